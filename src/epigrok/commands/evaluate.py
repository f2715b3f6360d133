"""`epigrok evaluate RUN`: score a checkpoint, vary its context, or show when it grokked."""

from collections.abc import Sequence
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
    _print_rows(rows, parsed.series)
    print(f"table: {table_of(run.directory, parsed.series)}")
    return 0


def _print_rows(rows: list[dict[str, Any]], series: ContextSeries | None) -> None:
    suffix = "" if series else FINAL_ANSWER
    axis = SERIES_TABLES[series] if series else None
    heads = [axis] if axis else []
    columns = [f"{name}{suffix}" for name in _COLUMNS]
    print(_line(["split", "posterior", *heads, *columns]))
    for row in rows:
        numbers = [f"{row[name]:.4g}" for name in columns]
        print(_line([row["split"], row["posterior"], *(str(row[h]) for h in heads), *numbers]))


def _print_times(run: Run) -> None:
    names = ["fitted_step", "generalised_step", "peak_step", "collapsed_step"]
    names += ["lead_of_peak", "lead_of_collapse"]
    print(_line(["split", "posterior", *names]))
    for times in grokking_times(run.metrics()):
        steps = [getattr(times, name) for name in names]
        texts = ["-" if step is None else str(step) for step in steps]
        print(_line([times.split, times.posterior, *texts]))


def _line(cells: list[str]) -> str:
    widths = [10, 36, *[18] * (len(cells) - 2)]
    return printable("".join(f"{cell:<{width}}" for cell, width in zip(cells, widths)).rstrip())
