"""`epigrok report DIR`: what a sweep or a run showed, as one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse


@dataclass(frozen=True, kw_only=True)
class ReportArguments:
    """Write one HTML page that needs nothing beside it: answer, figures, tables, provenance.

    The figures as PDF and all data as CSV lie next to it.
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Of a sweep, or of a single run; `zoo:NAME` for one that comes with the package."""
    out: Path | None = None
    """Folder for the page and its files; DIR/report if not given."""
    seeds_apart: bool = False
    """Show every run by itself in figures, instead of medians over seeds."""


def main(arguments: Sequence[str]) -> int:
    """Write the page and say where."""
    parsed = parse(ReportArguments, "report", arguments)
    # Here and not above: `epigrok report --help` needs no matplotlib.
    from epigrok.report import write_report

    print(write_report(parsed.directory, parsed.out, parsed.seeds_apart))
    return 0
