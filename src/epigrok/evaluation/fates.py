"""The fate of a run: whether it generalised, memorised, or lost again what it had learnt.

It is judged by the accuracy of `point` on the last answers of one split, along the curve.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from epigrok.config.posterior import POINT
from epigrok.config.splits import ID_TRAIN
from epigrok.errors import UserError
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD, FITTED_THRESHOLD, curves_of
from epigrok.evaluation.schema import ACCURACY_FINAL

Fate = Literal["generalised", "memorised", "between", "unfitted"]
End = Fate | Literal["lost"]
FATES: tuple[Fate, ...] = ("generalised", "memorised", "between", "unfitted")
ENDS: tuple[End, ...] = ("generalised", "lost", "memorised", "between", "unfitted")
"""Fates, and `lost`: at 0.5 or more once, and at less than half of its best at the end."""


@dataclass(frozen=True, kw_only=True)
class AccuracyBounds:
    """Accuracies that count as generalised and as memorised; runs between are left out."""

    generalised_from: float = ACCURACY_THRESHOLD
    """A run with this accuracy or more at the end has generalised."""
    memorised_below: float = 0.5
    """A run with less than this accuracy at the end has only memorised."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.memorised_below <= self.generalised_from <= 1.0:
            raise UserError(
                "accuracy bounds must satisfy 0 <= memorised_below <= generalised_from <= 1, got "
                f"{self.memorised_below} and {self.generalised_from}"
            )

    def fate(self, final_accuracy: float, first_fitted_step: int | None) -> Fate:
        """The fate of a run, from its accuracy at the end and its first fitted step, if any."""
        if first_fitted_step is None:
            return "unfitted"
        if final_accuracy >= self.generalised_from:
            return "generalised"
        return "memorised" if final_accuracy < self.memorised_below else "between"


def first_fitted_step(train_curve: Sequence[Mapping[str, Any]]) -> int | None:
    """First evaluation with the training split fitted, whether or not it stays so."""
    fitted = (row["step"] for row in train_curve if row[ACCURACY_FINAL] >= FITTED_THRESHOLD)
    return next(fitted, None)


def end_of_run(
    metrics: Iterable[Mapping[str, Any]], split: str, bounds: AccuracyBounds
) -> End | None:
    """One of `ENDS`, from a run's curve; None if it did not track `point` or lacks the split."""
    curves = curves_of(metrics)
    curve, train_curve = curves.get((POINT, split)), curves.get((POINT, ID_TRAIN.name))
    if not curve or not train_curve:
        return None
    accuracies = [row[ACCURACY_FINAL] for row in curve]
    return end_of_curve(accuracies, first_fitted_step(train_curve), bounds)


def end_of_curve(
    accuracies: Sequence[float], first_fitted_step: int | None, bounds: AccuracyBounds
) -> End:
    """One of `ENDS`, from the accuracies along one curve."""
    best = max(accuracies)
    if best >= 0.5 and accuracies[-1] < best / 2:
        return "lost"
    return bounds.fate(accuracies[-1], first_fitted_step)
