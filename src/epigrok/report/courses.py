"""The course of a run on unseen data: what accuracy did, and what was read without labels."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epigrok.config.posterior import POINT
from epigrok.config.splits import Split
from epigrok.evaluation.fates import AccuracyBounds, End, end_of_curve
from epigrok.evaluation.grokking_times import (
    ACCURACY_THRESHOLD,
    FITTED_THRESHOLD,
    curves_of,
    first_that_holds,
)
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL
from epigrok.records.status import RunStatus
from epigrok.tables.events import rows_by_run
from epigrok.tables.groups import shown_posteriors
from epigrok.tables.store import SweepStore

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Look:
    """One evaluation; anything but accuracy may be None, where it was not measured."""

    step: int
    train_accuracy: float | None
    accuracy: float
    ratio: float | None
    """Tolerance ratio; before the training set is fitted it says nothing, and is left out."""
    epistemic: float | None
    """EU in nats."""
    state: str | None
    """What the monitor says."""


@dataclass(frozen=True)
class Course:
    """One run on one split that shows generalisation."""

    run: RunStatus
    split: Split
    posterior: str | None
    """Whose EU it is: the strongest control, which depends on no fit, or else the inferred one."""
    looks: tuple[Look, ...]
    fitted_step: int | None
    generalised_step: int | None
    """By accuracy; `announced` is the look at which the monitor said so."""

    @property
    def fate(self) -> End:
        """How it ended, by accuracy."""
        is_fitted = ((look.train_accuracy or 0.0) >= FITTED_THRESHOLD for look in self.looks)
        fitted_steps = (look.step for look, fitted in zip(self.looks, is_fitted) if fitted)
        accuracies = [look.accuracy for look in self.looks]
        return end_of_curve(accuracies, next(fitted_steps, None), AccuracyBounds())

    @property
    def best(self) -> Look:
        """The most accurate look."""
        return max(self.looks, key=lambda look: look.accuracy)

    @property
    def last(self) -> Look:
        """The newest look."""
        return self.looks[-1]

    @property
    def is_watched(self) -> bool:
        """Whether a monitor looked at it."""
        return any(look.state for look in self.looks)

    @property
    def announced(self) -> Look | None:
        """The first look at which the monitor said "generalised"."""
        return self._first("generalised")

    @property
    def seen_lost(self) -> Look | None:
        """The first look at which the monitor said "lost"."""
        return self._first("lost")

    @property
    def lag(self) -> int | None:
        """Steps from generalisation by accuracy to the announcement."""
        if self.announced is None or self.generalised_step is None:
            return None
        return self.announced.step - self.generalised_step

    @property
    def peak_epistemic(self) -> float:
        """The largest EU; zero without any."""
        return max((look.epistemic or 0.0 for look in self.looks), default=0.0)

    def _first(self, state: str) -> Look | None:
        return next((look for look in self.looks if look.state == state), None)


def courses(store: SweepStore, statuses: Iterable[RunStatus]) -> list[Course]:
    """Every evaluated run on each of its unseen splits, in the order of `statuses`."""
    metrics = dict(rows_by_run(store))
    names = ("run_id", "step", "split", "state", "tolerance_ratio")
    said: dict[str, list[Row]] = defaultdict(list)
    for row in store.sql(f"select {', '.join(names)} from tolerance").fetchall():
        said[row[0]].append(dict(zip(names, row)))
    return [
        course
        for run in statuses
        if run.config and run.run_id in metrics
        for course in courses_of_run(
            run,
            metrics[run.run_id],
            said[run.run_id],
            shown_posteriors(store.runs[run.run_id].description().posteriors),
        )
    ]


def courses_of_run(
    run: RunStatus, metrics: Iterable[Row], tolerance: Iterable[Row], posteriors: Sequence[str]
) -> list[Course]:
    """A run on each of its unseen splits.

    Args:
        run: Where it stands.
        metrics: The rows of its table `metrics`.
        tolerance: Those of its table `tolerance`.
        posteriors: Posteriors that may be shown; the last one is.
    """
    curves = curves_of(metrics)
    names = [name for name, _ in curves]
    point = POINT if POINT in names or not names else names[0]
    posterior = next((name for name in reversed(posteriors) if name in names), None)
    training = next((split.name for split in run.splits if split.is_training), "")
    seen = curves.get((point, training), [])
    said = {(row["split"], row["step"]): row for row in tolerance}
    train_accuracy = {row["step"]: row[ACCURACY_FINAL] for row in seen}
    fitted = first_that_holds(seen, ACCURACY_FINAL, at_least=FITTED_THRESHOLD)
    found = []
    for split in run.splits:
        curve = curves.get((point, split.name), [])
        if not split.shows_generalisation or not curve:
            continue
        uncertain = curves.get((posterior or "", split.name), [])
        epistemic = {row["step"]: row[EPISTEMIC_FINAL] for row in uncertain}
        looks = []
        for row in curve:
            step, reading = row["step"], said.get((split.name, row["step"]), {})
            state = reading.get("state")
            looks.append(
                Look(
                    step=step,
                    train_accuracy=train_accuracy.get(step),
                    accuracy=row[ACCURACY_FINAL],
                    ratio=None if state == "fitting" else reading.get("tolerance_ratio"),
                    epistemic=epistemic.get(step),
                    state=state,
                )
            )
        generalised = first_that_holds(curve, ACCURACY_FINAL, at_least=ACCURACY_THRESHOLD)
        found.append(Course(run, split, posterior, tuple(looks), fitted, generalised))
    return found
