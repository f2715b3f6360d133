"""`epigrok export DIR FILE.parquet`: a table of all runs of a sweep as one file to publish."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.errors import UserError
from epigrok.tables import open_sweep


@dataclass(frozen=True, kw_only=True)
class ExportArguments:
    """Write a table of all runs of a sweep, each row with its run's configuration, as Parquet."""

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """Parquet file to write; replaces an existing one."""
    table: str = "metrics"
    """Table to write: metrics (the curves), final, exact, training, positions, …"""
    done_only: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Leave out unfinished runs."""


def main(arguments: Sequence[str]) -> int:
    """Write the file."""
    parsed = parse(ExportArguments, "export", arguments)
    if parsed.file.suffix != ".parquet":
        raise UserError(f"the file to write must end in .parquet, got {parsed.file}")
    store = open_sweep(parsed.directory, parsed.done_only, verified=True)
    for reason in store.left_out.values():
        raise UserError(f"nothing was written: {reason}; look at it with `epigrok check`")
    number = store.export(parsed.file, parsed.table)
    print(f"{number} rows in {parsed.file}")
    return 0
