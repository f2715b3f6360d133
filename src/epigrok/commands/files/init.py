"""`epigrok init FILE.toml`: an example of a sweep's description to start from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.errors import UserError
from epigrok.files import make_writable_directory
from epigrok.sweeps.description_files import EXAMPLE, TOML


@dataclass(frozen=True, kw_only=True)
class InitArguments:
    """Write a commented example of a sweep, a grid of runs, to change and to run."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")] = Path("sweep.toml")
    """TOML file to write; an existing file is left as it is."""


def main(arguments: Sequence[str]) -> int:
    """Write the file."""
    file = parse(InitArguments, "init", arguments).file
    if file.suffix != TOML:
        raise UserError(f"the file to write must end in {TOML}, got {file}")
    make_writable_directory(file.absolute().parent)
    try:
        with file.open("x") as opened:
            opened.write(EXAMPLE.read_text())
    except FileExistsError:
        raise UserError(f"{file} exists and is left as it is; choose another name") from None
    print(f"{file} is written; `epigrok sweep {file} --dry-run` lists its runs")
    return 0
