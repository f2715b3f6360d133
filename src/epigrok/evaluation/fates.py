"""How a run ended on a split, with the runs that had learnt something and lost it again."""

from collections.abc import Iterable, Mapping
from typing import Any

from epigrok.config.posterior import POINT
from epigrok.evaluation.grokking_times import curves_of
from epigrok.evaluation.schema import ACCURACY_FINAL
from epigrok.evaluation.separation import FATES, AccuracyBounds, readings

LOST = "lost"
ENDS = (*FATES[:1], LOST, *FATES[1:])
"""`lost`: at 0.5 or more once, and at less than half of its best at the end."""


def end_of_run(
    metrics: Iterable[Mapping[str, Any]], split: str, bounds: AccuracyBounds
) -> str | None:
    """One of `ENDS`, from a run's curve; None if it did not track `point` or lacks the split."""
    rows = list(metrics)
    # The number of classes scales uncertainties, which nothing here looks at.
    found = readings(rows, split, num_classes=2)
    if not found:
        return None
    accuracies = [row[ACCURACY_FINAL] for row in curves_of(rows)[POINT, split]]
    best = max(accuracies)
    if best >= 0.5 and accuracies[-1] < best / 2:
        return LOST
    return bounds.fate(found[0])
