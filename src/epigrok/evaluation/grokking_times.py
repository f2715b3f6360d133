"""When a run generalised: by accuracy, and by uncertainty, which needs no labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epigrok.config.posterior import POINT
from epigrok.config.splits import ID_TRAIN
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL

Row = Mapping[str, Any]
ACCURACY_THRESHOLD = 0.95
FITTED_THRESHOLD = 0.95
"""Accuracy from which the training split counts as fitted. Uncertainty before that says little,
because it is small at initialisation too."""
COLLAPSE_SHARE = 0.25
"""Uncertainty has collapsed at this share of its peak or less."""
NEEDED_COLUMNS = ("step", "split", "posterior", "num_samples", ACCURACY_FINAL, EPISTEMIC_FINAL)
"""Columns of `metrics` that the times are computed from."""


@dataclass(frozen=True)
class GrokkingTimes:
    """Steps of the events of one posterior on one split; None if an event never happened."""

    split: str
    posterior: str
    num_samples: int
    fitted_step: int | None
    """First evaluation from which the training split stays at accuracy 0.95 to the end."""
    generalised_step: int | None
    """First evaluation from which this split stays at accuracy 0.95 to the end."""
    peak_step: int | None
    """Evaluation with the largest epistemic uncertainty of all training, before fitting too: the
    peak comes before both where fitting and generalising coincide. The untrained network's is no
    peak. None where it is zero throughout. (`separation` only looks at steps from fitting on.)"""
    collapsed_step: int | None
    """First evaluation, fitted and past the peak, at a quarter of the peak or less to the end."""
    peak_epistemic: float
    final_epistemic: float

    @property
    def delay(self) -> int | None:
        """Steps from fitting the training split to generalising."""
        return _difference(self.generalised_step, self.fitted_step)

    @property
    def lead_of_peak(self) -> int | None:
        """Steps from the uncertainty's peak to generalisation by accuracy."""
        return _difference(self.generalised_step, self.peak_step)

    @property
    def lead_of_collapse(self) -> int | None:
        """Steps from the uncertainty's collapse to generalisation; negative if it comes later."""
        return _difference(self.generalised_step, self.collapsed_step)


def curves_of(metrics: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """(posterior, split) -> its rows over training."""
    curves: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(metrics, key=lambda row: row["step"]):
        curves.setdefault((row["posterior"], row["split"]), []).append(row)
    return curves


def grokking_times(
    metrics: Iterable[Row], generalised_from: float = ACCURACY_THRESHOLD
) -> list[GrokkingTimes]:
    """Times for every sampled posterior and split, from the table `metrics` of one run."""
    curves = curves_of(metrics)
    names = [posterior for posterior, _ in curves]
    point = POINT if POINT in names or not names else names[0]
    fitted = first_that_holds(
        curves.get((point, ID_TRAIN.name), []), ACCURACY_FINAL, at_least=FITTED_THRESHOLD
    )
    return [
        _times(
            curve,
            fitted,
            first_that_holds(
                curves.get((point, split), curve), ACCURACY_FINAL, at_least=generalised_from
            ),
        )
        for (_, split), curve in curves.items()
        if curve[0]["num_samples"] > 1
    ]


def _times(curve: Sequence[Row], fitted: int | None, generalised: int | None) -> GrokkingTimes:
    trained = [row for row in curve if row["step"] > 0] or curve
    values = [row[EPISTEMIC_FINAL] for row in trained]
    peak_index = max(range(len(values)), key=values.__getitem__)
    after = [row for row in trained[peak_index:] if fitted is not None and row["step"] >= fitted]
    level = COLLAPSE_SHARE * values[peak_index]
    # Without any uncertainty nothing peaks, and there is nothing to collapse.
    has_peak = values[peak_index] > 0.0
    after = after if has_peak else []
    return GrokkingTimes(
        split=curve[0]["split"],
        posterior=curve[0]["posterior"],
        num_samples=curve[0]["num_samples"],
        fitted_step=fitted,
        generalised_step=generalised,
        peak_step=trained[peak_index]["step"] if has_peak else None,
        collapsed_step=first_that_holds(after, EPISTEMIC_FINAL, at_most=level),
        peak_epistemic=values[peak_index],
        final_epistemic=values[-1],
    )


def first_that_holds(
    curve: Sequence[Row],
    column: str,
    at_least: float = float("-inf"),
    at_most: float = float("inf"),
) -> int | None:
    """First step from which the column stays within bounds until the end."""
    step = None
    for row in reversed(curve):
        if not at_least <= row[column] <= at_most:
            break
        step = row["step"]
    return step


def _difference(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier
