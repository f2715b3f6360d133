"""What every run did: when it fitted, generalised, and what its uncertainty did meanwhile."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from epigrok.evaluation import GrokkingTimes, grokking_times
from epigrok.experiments.status import RunStatus
from epigrok.experiments.store import SweepStore
from epigrok.figures.events import rows_by_run
from epigrok.figures.settings import by_size, distinguishing_fields, value_label
from epigrok.report.wording import NONE


@dataclass(frozen=True)
class Outcome:
    """One run on one split under one posterior."""

    run: RunStatus
    times: GrokkingTimes


@dataclass(frozen=True)
class Median:
    """Of a quantity over the runs that have it."""

    value: float | None
    """None where no run has it."""
    num_runs: int

    @staticmethod
    def of(values: Iterable[float | None]) -> "Median":
        """Of those that are not None."""
        present = [value for value in values if value is not None]
        return Median(median(present) if present else None, len(present))


def outcomes(store: SweepStore, statuses: Sequence[RunStatus]) -> list[Outcome]:
    """One per run that has been evaluated, split and sampled posterior."""
    times_of_id = {run_id: grokking_times(rows) for run_id, rows in rows_by_run(store)}
    return [
        Outcome(status, times)
        for status in statuses
        if status.config  # one that cannot be read belongs to no setting
        for times in times_of_id.get(status.run_id, [])
    ]


def setting_fields(statuses: Sequence[RunStatus]) -> list[str]:
    """Fields that tell settings apart, `preset` first; runs that agree in them are seeds of one."""
    configs = [status.config for status in statuses if status.config]
    names = dict.fromkeys(name for config in configs for name in config)
    # Presets differ in which fields they have.
    complete = [{name: config.get(name) for name in names} for config in configs]
    return list(dict.fromkeys(["preset", *distinguishing_fields(complete)]))


def ordered(statuses: Iterable[RunStatus], fields: Sequence[str]) -> list[RunStatus]:
    """Runs by the values of their fields, numbers as numbers."""
    return sorted(
        statuses, key=lambda status: [by_size(status.config.get(name)) for name in fields]
    )


def field_text(run: RunStatus, name: str) -> str:
    """A run's value of a field, under the head `field_label` of figures."""
    return value_label(name, run.config[name]) if name in run.config else NONE


def grouped(
    found: Iterable[Outcome], fields: Sequence[str]
) -> dict[tuple[str, ...], list[Outcome]]:
    """Outcomes by their runs' values of `fields`, split and posterior."""
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in found:
        values = (field_text(outcome.run, name) for name in fields)
        key = (*values, outcome.times.split, outcome.times.posterior)
        groups.setdefault(key, []).append(outcome)
    return groups
