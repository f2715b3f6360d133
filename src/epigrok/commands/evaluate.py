"""`epigrok evaluate RUN`: score a checkpoint, vary its context, or show when it grokked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from epigrok.commands.arguments import parse
from epigrok.config import ContextSeries
from epigrok.evaluation import grokking_times
from epigrok.evaluation.schema import FINAL_ANSWER, SERIES_TABLES
from epigrok.runs.evaluating import EvaluateOptions, evaluate_run, table_of
from epigrok.runs.run import Run, open_run
from epigrok.wording import printable

_COLUMNS = ("accuracy", "nll", "ece", "total", "aleatoric", "epistemic")
_UNITS = "nll, total, aleatoric and epistemic in nats"
_TIMES = {
    "fitted": "fitted_step",
    "generalised": "generalised_step",
    "peak": "peak_step",
    "collapsed": "collapsed_step",
    "peak_lead": "lead_of_peak",
    "collapse_lead": "lead_of_collapse",
}
"""Head of a column -> what it shows of `GrokkingTimes`."""


@dataclass(frozen=True, kw_only=True)
class EvaluateArguments:
    """Evaluate a run at one of its checkpoints, and keep the table in the run directory."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Run directory, or `zoo:NAME` for a run that comes with the package (`epigrok zoo`)."""
    series: ContextSeries | None = None
    """Vary the context: its length from 1 to that of training, or its noise from 0 to 1."""
    ensemble: tuple[Path, ...] = ()
    """Other runs of the same task, evaluated together with this one as an ensemble."""
    times: bool = False
    """Only show when the run generalised, by accuracy and by uncertainty, from its metrics."""
    options: Annotated[EvaluateOptions, tyro.conf.arg(name="")] = field(
        default_factory=EvaluateOptions
    )


def main(arguments: Sequence[str]) -> int:
    """Evaluate and print a table."""
    parsed = parse(EvaluateArguments, "evaluate", arguments)
    run = open_run(parsed.run)
    if parsed.times:
        _print_times(run)
        return 0
    others = tuple(open_run(path) for path in parsed.ensemble)
    rows = evaluate_run(run, parsed.options, parsed.series, others)
    if parsed.series is None:
        _print_rows(rows)
    else:
        _print_series(rows, SERIES_TABLES[parsed.series])
    print(f"table: {table_of(run.directory, parsed.series)}")
    return 0


def _print_rows(rows: list[dict[str, Any]]) -> None:
    lines = [["split", "posterior", *_COLUMNS]]
    lines += [[row["split"], row["posterior"], *_scores(row, FINAL_ANSWER)] for row in rows]
    _print_table(lines)
    print(f"of the last answer; {_UNITS}")


def _print_series(rows: list[dict[str, Any]], axis: str) -> None:
    """A line per context, under the split and the posterior, whose names are long."""
    curves: dict[str, list[list[str]]] = {}
    for row in rows:
        cells = ["", str(row[axis]), *_scores(row, "")]
        curves.setdefault(f"{row['split']}, {row['posterior']}", []).append(cells)
    lines, groups = [["", axis, *_COLUMNS]], {}
    for name, curve in curves.items():
        groups[len(lines)] = name
        lines += curve
    _print_table(lines, groups)
    print(_UNITS)


def _scores(row: dict[str, Any], suffix: str) -> list[str]:
    return [f"{row[name + suffix]:.4g}" for name in _COLUMNS]


def _print_times(run: Run) -> None:
    lines = [["split", "posterior", *_TIMES]]
    for times in grokking_times(run.metrics()):
        steps = [getattr(times, name) for name in _TIMES.values()]
        texts = ["-" if step is None else str(step) for step in steps]
        lines.append([times.split, times.posterior, *texts])
    _print_table(lines)
    print("steps; a lead is from the peak or the collapse of EU to generalising")


def _print_table(lines: list[list[str]], groups: Mapping[int, str] | None = None) -> None:
    """Rows of cells, each column as wide as its widest cell; `groups` are titles above rows."""
    lines = [list(map(printable, cells)) for cells in lines]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for number, cells in enumerate(lines):
        if title := (groups or {}).get(number):
            print(printable(title))
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths)).rstrip())
