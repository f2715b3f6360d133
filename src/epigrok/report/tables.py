"""The tables of the page: what became of every setting, and how far every run has got."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from epigrok.config.splits import of_hardest
from epigrok.evaluation import GrokkingTimes
from epigrok.figures.drawn_figure import columns
from epigrok.records.status import RunStatus
from epigrok.report.answer import goals_of
from epigrok.report.courses import Course
from epigrok.report.run_events import Median, RunEvents, field_text, grouped
from epigrok.tables.fields import field_label, varying_fields
from epigrok.wording import NONE, accuracy_text, share_text, step_text, value_text

_STEPS = {
    "fitted_step": "fitted",
    "generalised_step": "generalised",
    "peak_step": "EU peak",
    "collapsed_step": "EU collapse",
    "lead_of_peak": "lead of peak",
    "lead_of_collapse": "lead of collapse",
}
_VALUES = {"peak_epistemic": "EU at peak", "final_epistemic": "EU at end"}
_LEADS = ("delay", "lead_of_peak", "lead_of_collapse")


@dataclass(frozen=True)
class Column:
    """A column of a table on the page."""

    title: str
    kind: Literal["word", "number", "prose"] = "word"
    """Numbers are aligned right, and only prose wraps."""


@dataclass(frozen=True)
class Table:
    """A table with its cells as text."""

    columns: list[Column]
    rows: list[list[str]]


def grokking_table(found: Sequence[RunEvents], fields: Sequence[str]) -> Table:
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


def outcome_table(found: Sequence[Course], fields: Sequence[str]) -> Table:
    """How many runs of every setting generalised, and what the monitor said of them."""
    goals = goals_of(found)
    groups: dict[tuple[str, ...], list[Course]] = {}
    for course in found:
        values = (field_text(course.run, name) for name in fields)
        groups.setdefault((*values, goals[course.split.name]), []).append(course)
    heads = [Column(field_label(name)) for name in fields] + [Column("unseen")]
    titles = ("runs", "generalised", "at step", "announced of them", "steps later")
    heads += [Column(title, "number") for title in (*titles, "announced of the rest", "seen lost")]
    rows = []
    for key, members in groups.items():
        right = [course for course in members if course.fate == "generalised"]
        rest = [course for course in members if course.fate != "generalised" and course.is_watched]
        watched = [course for course in right if course.is_watched]
        rows.append(
            [
                *key,
                str(len(members)),
                share_text(len(right), len(members)),
                step_text(Median.of(course.generalised_step for course in right).value),
                _share_announced(watched),
                step_text(Median.of(course.lag for course in watched).value),
                _share_announced(rest),
                step_text(sum(course.seen_lost is not None for course in members)),
            ]
        )
    return Table(heads, rows)


def _share_announced(watched: Sequence[Course]) -> str:
    number = sum(course.announced is not None for course in watched)
    return share_text(number, len(watched)) if watched else NONE


def posterior_table(found: Sequence[RunEvents]) -> Table:
    """When every posterior's uncertainty collapsed, beside accuracy; the best one first."""
    titles = ("transitions", "collapsed in time", "later", "not at all", "without generalising")
    groups: dict[str, list[GrokkingTimes]] = {}
    for outcome in found:
        if outcome.times.split in (s.name for s in outcome.run.splits if s.shows_generalisation):
            groups.setdefault(outcome.times.posterior, []).append(outcome.times)
    rows = []
    for posterior, times in groups.items():
        right = [time for time in times if time.generalised_step is not None]
        leads = [time.lead_of_collapse for time in right]
        in_time = sum(lead is not None and lead >= 0 for lead in leads)
        never = leads.count(None)
        others = [time for time in times if time.generalised_step is None]
        early = sum(time.collapsed_step is not None for time in others)
        counts = (len(right), in_time, len(right) - in_time - never, never)
        cells = [
            *(step_text(count) for count in counts),
            share_text(early, len(others)) if others else NONE,
        ]
        rows.append((-in_time, never, [posterior, *cells]))
    heads = [Column("posterior"), *(Column(title, "number") for title in titles)]
    return Table(heads, [row for *_, row in sorted(rows, key=lambda row: row[:2])])


def _median_text(step: Median, total: int) -> str:
    """A median, with the number of runs behind it if it is not all of them."""
    text = step_text(step.value)
    if 0 < step.num_runs < total:
        text += f" ({share_text(step.num_runs, total)})"
    return text


def run_table(statuses: Sequence[RunStatus]) -> Table:
    """How far every run has got."""
    fields = [name for name in _varying(statuses) if name != "preset"]
    splits = list(dict.fromkeys(name for status in statuses for name in status.accuracy))
    heads = [Column("run"), Column("preset")]
    heads += [Column(field_label(name)) for name in fields]
    heads += [Column("state"), Column("step", "number")]
    heads += [Column(f"accuracy {name}", "number") for name in splits] + [Column("EU", "number")]
    has_reasons = any(status.reason for status in statuses)
    if has_reasons:
        heads.append(Column("what is wrong", "prose"))
    rows = [
        [
            status.run_id,
            *(field_text(status, name) for name in ("preset", *fields)),
            status.state,
            f"{step_text(status.step)} / {step_text(status.num_steps)}",
            *(accuracy_text(status.accuracy.get(name)) for name in splits),
            value_text(of_hardest(status.epistemic, status.splits)),
            *([status.reason] if has_reasons else []),
        ]
        for status in statuses
    ]
    return Table(heads, rows)


def run_columns(statuses: Sequence[RunStatus]) -> dict[str, list[Any]]:
    """The run table with its numbers in full, for a CSV file."""
    fields = _varying(statuses)
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
                "epistemic_final": of_hardest(status.epistemic, status.splits),
                "reason": status.reason,
            }
            for status in statuses
        ]
    )


def grokking_columns(found: Sequence[RunEvents], fields: Sequence[str]) -> dict[str, list[Any]]:
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


def course_columns(found: Sequence[Course]) -> dict[str, list[Any]]:
    """Every look at every run, for a CSV file."""
    return columns(
        [
            {"run_id": course.run.run_id, "split": course.split.name, **asdict(look)}
            for course in found
            for look in course.looks
        ]
    )


def _varying(statuses: Sequence[RunStatus]) -> list[str]:
    return varying_fields([status.config for status in statuses])
