"""The tables of the page: when every setting grokked, and where every run stands."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from epigrok.experiments.status import RunStatus, most_unseen, varying_fields
from epigrok.figures.drawn_figure import columns
from epigrok.figures.settings import field_label
from epigrok.report.outcomes import Median, Outcome, field_text, grouped
from epigrok.report.wording import accuracy_text, share_text, step_text, value_text

_STEPS = {
    "fitted": "fitted",
    "generalised": "generalised",
    "peak": "EU peak",
    "collapsed": "EU collapse",
    "lead_of_peak": "lead of peak",
    "lead_of_collapse": "lead of collapse",
}
_VALUES = {"peak_epistemic": "EU at peak", "final_epistemic": "EU at end"}
_LEADS = ("delay", "lead_of_peak", "lead_of_collapse")


@dataclass(frozen=True)
class Column:
    """A head, and what stands under it."""

    title: str
    kind: Literal["word", "number", "prose"] = "word"
    """Numbers stand to the right, and only prose is broken into lines."""


@dataclass(frozen=True)
class Table:
    """Cells as text, ready to be shown."""

    columns: list[Column]
    rows: list[list[str]]


def grokking_table(found: Sequence[Outcome], fields: Sequence[str]) -> Table:
    """Steps of every setting, split and posterior; medians over its runs."""
    heads = [Column(field_label(name)) for name in (*fields, "split", "posterior")]
    heads += [Column(title, "number") for title in ("runs", *_STEPS.values(), *_VALUES.values())]
    rows = []
    for key, outcomes in grouped(found, fields).items():
        every = [outcome.times for outcome in outcomes]
        steps = [Median.of(getattr(times, name) for times in every) for name in _STEPS]
        values = [Median.of(getattr(times, name) for times in every) for name in _VALUES]
        cells = [_median_text(step, len(every)) for step in steps]
        cells += [value_text(value.value) for value in values]
        rows.append([*key, str(len(every)), *cells])
    return Table(heads, rows)


def _median_text(step: Median, total: int) -> str:
    """With the number of runs it stands for, where these are not all."""
    is_partial = 0 < step.num_runs < total
    return step_text(step.value) + f" ({share_text(step.num_runs, total)})" * is_partial


def run_table(statuses: Sequence[RunStatus]) -> Table:
    """Where every run stands."""
    fields = [name for name in _told_apart(statuses) if name != "preset"]
    splits = list(dict.fromkeys(name for status in statuses for name in status.accuracy))
    heads = [Column("run"), Column("preset")]
    heads += [Column(field_label(name)) for name in fields]
    heads += [Column("state"), Column("step", "number")]
    heads += [Column(f"accuracy {name}", "number") for name in splits] + [Column("EU", "number")]
    has_reasons = any(status.reason for status in statuses)
    heads += [Column("why it failed", "prose")] * has_reasons
    rows = [
        [
            status.run_id,
            *(field_text(status, name) for name in ("preset", *fields)),
            status.state,
            f"{step_text(status.step)} / {step_text(status.num_steps)}",
            *(accuracy_text(status.accuracy.get(name)) for name in splits),
            value_text(most_unseen(status.epistemic)),
            *[status.reason] * has_reasons,
        ]
        for status in statuses
    ]
    return Table(heads, rows)


def run_columns(statuses: Sequence[RunStatus]) -> dict[str, list[Any]]:
    """The run table with its numbers in full, for a CSV file."""
    fields = _told_apart(statuses)
    splits = list(dict.fromkeys(name for status in statuses for name in status.accuracy))
    return columns(
        [
            {
                "run_id": status.run_id,
                **{name: status.config.get(name) for name in ("preset", *fields)},
                "state": status.state,
                "step": status.step,
                "num_steps": status.num_steps,
                **{f"accuracy_final_{name}": status.accuracy.get(name) for name in splits},
                "epistemic_final": most_unseen(status.epistemic),
                "reason": status.reason,
            }
            for status in statuses
        ]
    )


def grokking_columns(found: Sequence[Outcome], fields: Sequence[str]) -> dict[str, list[Any]]:
    """The times of every single run, for a CSV file."""
    return columns(
        [
            {
                "run_id": outcome.run.run_id,
                **{
                    name: outcome.run.config.get(name)
                    for name in (*fields, "task_seed", "run_seed")
                },
                **asdict(outcome.times),
                **{name: getattr(outcome.times, name) for name in _LEADS},
            }
            for outcome in found
        ]
    )


def _told_apart(statuses: Sequence[RunStatus]) -> list[str]:
    return varying_fields([status.config for status in statuses])
