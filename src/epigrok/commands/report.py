"""`epigrok report DIR`: one page on the results of a sweep or a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse


@dataclass(frozen=True, kw_only=True)
class ReportArguments:
    """Write one self-contained HTML page: answer, figures, tables, provenance.

    The figures as PDF and all data as CSV are next to it.
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""
    out: Path | None = None
    """Folder for the page and its files; by default DIR/report."""
    seeds_apart: bool = False
    """Show every run separately in figures, instead of medians over seeds."""
    where: tuple[str, ...] = ()
    """Only runs whose fields have these values, as in task.num_base_tasks=64 run_seed=0,1."""


def main(arguments: Sequence[str]) -> int:
    """Write the page and say where."""
    parsed = parse(ReportArguments, "report", arguments)
    # Imported here, because `epigrok report --help` needs no matplotlib.
    from epigrok.report import write_report

    print(write_report(parsed.directory, parsed.out, parsed.seeds_apart, parsed.where))
    return 0
