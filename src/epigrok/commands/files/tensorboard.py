"""`epigrok tensorboard DIR --logdir OUT`: a sweep's curves for TensorBoard."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.tables import open_sweep
from epigrok.tables.tensorboard import write_event_files


@dataclass(frozen=True, kw_only=True)
class TensorBoardArguments:
    """Write the curves of all runs of a sweep as TensorBoard event files."""

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""
    logdir: Path
    """Folder to write to; each run gets a folder named by its id, with its events replaced."""


def main(arguments: Sequence[str]) -> int:
    """Write the event files."""
    parsed = parse(TensorBoardArguments, "tensorboard", arguments)
    number = write_event_files(open_sweep(parsed.directory), parsed.logdir)
    print(
        f"{number} runs in {parsed.logdir}; look at them with: tensorboard --logdir {parsed.logdir}"
    )
    return 0
