"""The events of every run, grouped by setting."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from epigrok.evaluation import GrokkingTimes
from epigrok.records.status import RunStatus
from epigrok.tables.events import times_by_run
from epigrok.tables.fields import by_size, distinguishing_fields, value_label
from epigrok.tables.store import SweepStore
from epigrok.wording import NONE


@dataclass(frozen=True)
class RunEvents:
    """One run on one split under one posterior."""

    run: RunStatus
    times: GrokkingTimes


@dataclass(frozen=True)
class Median:
    """Median of a quantity over the runs that have it."""

    value: float | None
    """None if no run has it."""
    num_runs: int

    @staticmethod
    def of(values: Iterable[float | None]) -> "Median":
        """The median of the values that are not None."""
        present = [value for value in values if value is not None]
        return Median(median(present) if present else None, len(present))


def run_events(store: SweepStore, statuses: Sequence[RunStatus]) -> list[RunEvents]:
    """Events of every evaluated run, one per split and sampled posterior."""
    times_of_id = times_by_run(store)
    return [
        RunEvents(status, times)
        for status in statuses
        if status.config  # an unreadable run belongs to no setting
        for times in times_of_id.get(status.run_id, [])
    ]


def setting_fields(statuses: Sequence[RunStatus]) -> list[str]:
    """Fields that distinguish settings, `preset` first."""
    configs = [status.config for status in statuses if status.config]
    return list(dict.fromkeys(["preset", *distinguishing_fields(configs)]))


def ordered(statuses: Iterable[RunStatus], fields: Sequence[str]) -> list[RunStatus]:
    """Runs sorted by the values of their fields, numbers by size."""
    return sorted(
        statuses, key=lambda status: [by_size(status.config.get(name)) for name in fields]
    )


def field_text(run: RunStatus, name: str) -> str:
    """A run's value of a field, in words."""
    return value_label(name, run.config[name]) if name in run.config else NONE


def grouped(
    found: Iterable[RunEvents], fields: Sequence[str]
) -> dict[tuple[str, ...], list[RunEvents]]:
    """Events by their runs' values of `fields`, split and posterior."""
    groups: dict[tuple[str, ...], list[RunEvents]] = {}
    for events in found:
        values = (field_text(events.run, name) for name in fields)
        key = (*values, events.times.split, events.times.posterior)
        groups.setdefault(key, []).append(events)
    return groups
