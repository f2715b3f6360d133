"""Which uncertainty separates runs that generalised from runs that memorised?

For a sampled posterior, uncertainty means its epistemic part. `point` has none, so it stands for
plain predictive entropy, the baseline that every posterior has to beat. All numbers come from the
curve, are of the last answer and in nats.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

from epigrok.config.posterior import POINT
from epigrok.config.splits import ID_TRAIN
from epigrok.evaluation.fates import AccuracyBounds, Fate, first_fitted_step
from epigrok.evaluation.grokking_times import curves_of
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL, TOTAL_FINAL

STATISTICS = ("peak_uncertainty", "per_log_classes", "of_peak", "over_training")
"""Fields of `FinalUncertainty` that are small for runs that generalised, if any separates."""


@dataclass(frozen=True)
class FinalUncertainty:
    """Uncertainty of one posterior on one split at the end of a run; None where undefined."""

    posterior: str
    num_samples: int
    accuracy: float
    """Of `point`, at the end."""
    first_fitted_step: int | None
    """First evaluation with the training split fitted, whether or not it stays so."""
    uncertainty: float
    """At the end."""
    peak_uncertainty: float | None
    """Largest from `first_fitted_step` on; earlier values say more about the initial weights."""
    peak_once_fitted_step: int | None
    per_log_classes: float
    """Uncertainty over ln C, the most that C classes allow."""
    of_peak: float | None
    """Uncertainty over its own peak."""
    over_training: float | None
    """Uncertainty over that of the training split."""
    entropy: float
    """Plain predictive entropy of `point`, at the end."""


@dataclass(frozen=True)
class Separation:
    """One statistic of one posterior over the runs of one group."""

    group: str
    posterior: str
    statistic: str
    num_generalised: int
    num_memorised: int
    largest_generalised: float | None
    smallest_memorised: float | None

    @property
    def margin(self) -> float | None:
        """Smallest value of memorised runs over the largest of generalised ones."""
        if self.largest_generalised is None or self.smallest_memorised is None:
            return None
        if self.largest_generalised == 0.0:
            return inf if self.smallest_memorised > 0.0 else 1.0
        return self.smallest_memorised / self.largest_generalised

    @property
    def separates(self) -> bool | None:
        """Whether one threshold separates the generalised from the memorised runs."""
        return None if self.margin is None else self.margin > 1.0


def final_uncertainties(
    metrics: Iterable[Mapping[str, Any]], split: str, num_classes: int
) -> list[FinalUncertainty]:
    """One per posterior; none if the run did not track `point` or lacks the split."""
    curves = curves_of(metrics)
    point, point_train = curves.get((POINT, split)), curves.get((POINT, ID_TRAIN.name))
    if not point or not point_train or any(row[TOTAL_FINAL] is None for row in point):
        return []
    fitted = first_fitted_step(point_train)
    table = []
    for (posterior, name), curve in curves.items():
        is_sampled = curve[0]["num_samples"] > 1
        train_curve = curves.get((posterior, ID_TRAIN.name))
        if name != split or train_curve is None or not (is_sampled or posterior == POINT):
            continue
        column = EPISTEMIC_FINAL if is_sampled else TOTAL_FINAL
        if any(row[column] is None for row in (*curve, *train_curve)):
            continue  # another version, or another program, did not measure it
        uncertainty = curve[-1][column]
        training = train_curve[-1][column]
        once_fitted = [row for row in curve if fitted is not None and row["step"] >= fitted]
        peak = max(once_fitted, key=lambda row: row[column], default=None)
        table.append(
            FinalUncertainty(
                posterior=posterior,
                num_samples=curve[0]["num_samples"],
                accuracy=point[-1][ACCURACY_FINAL],
                first_fitted_step=fitted,
                uncertainty=uncertainty,
                peak_uncertainty=None if peak is None else peak[column],
                peak_once_fitted_step=None if peak is None else peak["step"],
                per_log_classes=uncertainty / log(num_classes),
                of_peak=None if peak is None else _ratio(uncertainty, peak[column]),
                over_training=_ratio(uncertainty, training),
                entropy=point[-1][TOTAL_FINAL],
            )
        )
    return table


def separations(
    groups: Mapping[str, Sequence[FinalUncertainty]], bounds: AccuracyBounds
) -> list[Separation]:
    """Every statistic of every posterior, group by group."""
    table = []
    for group, members in groups.items():
        for posterior in dict.fromkeys(found.posterior for found in members):
            own = [found for found in members if found.posterior == posterior]
            for statistic in STATISTICS:
                generalised = _values(own, statistic, bounds, "generalised")
                memorised = _values(own, statistic, bounds, "memorised")
                table.append(
                    Separation(
                        group=group,
                        posterior=posterior,
                        statistic=statistic,
                        num_generalised=len(generalised),
                        num_memorised=len(memorised),
                        largest_generalised=max(generalised, default=None),
                        smallest_memorised=min(memorised, default=None),
                    )
                )
    return table


def _values(
    members: Sequence[FinalUncertainty], statistic: str, bounds: AccuracyBounds, fate: Fate
) -> list[float]:
    values = [
        getattr(found, statistic)
        for found in members
        if bounds.fate(found.accuracy, found.first_fitted_step) == fate
    ]
    return [value for value in values if value is not None]


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator > 0.0 else None
