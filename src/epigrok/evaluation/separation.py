"""Which uncertainty separates runs that generalised from runs that memorised?

The uncertainty of a sampled posterior is its epistemic part. `point` has none, so its plain
predictive entropy takes its place: the baseline that every posterior has to beat. All numbers are
of the final answer, in nats, from the curve.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any, Literal

from epigrok.config.posterior import POINT
from epigrok.config.splits import ID_TRAIN
from epigrok.errors import UserError
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD, FITTED_THRESHOLD, curves_of
from epigrok.evaluation.schema import ACCURACY, ENTROPY, EU

STATISTICS = ("peak_uncertainty", "per_log_classes", "of_peak", "over_training")
"""Fields of a `Reading` that are small where a run generalised, if they say anything."""

Fate = Literal["generalised", "memorised", "between", "unfitted"]
FATES: tuple[Fate, ...] = ("generalised", "memorised", "between", "unfitted")


@dataclass(frozen=True)
class Reading:
    """What one posterior says of one split at the end of a run; None where nothing can be read."""

    posterior: str
    num_samples: int
    accuracy: float
    """Of the point prediction, at the end."""
    first_fitted_step: int | None
    """First evaluation that finds the training split fitted, whether or not that holds."""
    uncertainty: float
    """At the end."""
    peak_uncertainty: float | None
    """Largest from `first_fitted_step` on: before, it says more about the initial weights."""
    peak_step: int | None
    per_log_classes: float
    """Uncertainty over ln C, the most that C classes allow."""
    of_peak: float | None
    """Uncertainty over its own peak."""
    over_training: float | None
    """Uncertainty over that of the training split."""
    entropy: float
    """Plain predictive entropy of the point prediction, at the end."""


@dataclass(frozen=True, kw_only=True)
class AccuracyBounds:
    """What counts as generalised and what as merely memorised; runs between are left out."""

    generalised_from: float = ACCURACY_THRESHOLD
    """Accuracy at the end from which a run has generalised."""
    memorised_below: float = 0.5
    """Accuracy at the end below which it has memorised what it was shown, and no more."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.memorised_below <= self.generalised_from <= 1.0:
            raise UserError(
                "bounds on accuracy must satisfy 0 <= memorised <= generalised <= 1, got "
                f"{self.memorised_below} and {self.generalised_from}"
            )

    def fate(self, reading: Reading) -> Fate:
        """How the run of a reading ended; one that never fitted its data needs no diagnosis."""
        if reading.first_fitted_step is None:
            return "unfitted"
        if reading.accuracy >= self.generalised_from:
            return "generalised"
        return "memorised" if reading.accuracy < self.memorised_below else "between"


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
        """Smallest value where memorised over the largest where generalised: apart if above 1."""
        if self.largest_generalised is None or self.smallest_memorised is None:
            return None
        if self.largest_generalised == 0.0:
            return inf if self.smallest_memorised > 0.0 else 1.0
        return self.smallest_memorised / self.largest_generalised

    @property
    def separates(self) -> bool | None:
        """Whether some threshold has all runs of either kind on its own side."""
        return None if self.margin is None else self.margin > 1.0


def readings(metrics: Iterable[Mapping[str, Any]], split: str, num_classes: int) -> list[Reading]:
    """One reading per posterior; none where the run tracked no point or has no such split."""
    curves = curves_of(metrics)
    point, point_train = curves.get((POINT, split)), curves.get((POINT, ID_TRAIN.name))
    if not point or not point_train or any(row[ENTROPY] is None for row in point):
        return []
    fitted = next((row["step"] for row in point_train if row[ACCURACY] >= FITTED_THRESHOLD), None)
    table = []
    for (posterior, name), curve in curves.items():
        is_sampled = curve[0]["num_samples"] > 1
        train_curve = curves.get((posterior, ID_TRAIN.name))
        if name != split or train_curve is None or not (is_sampled or posterior == POINT):
            continue
        column = EU if is_sampled else ENTROPY
        if any(row[column] is None for row in (*curve, *train_curve)):
            continue  # another version, or another program, did not measure it
        uncertainty = curve[-1][column]
        training = train_curve[-1][column]
        once_fitted = [row for row in curve if fitted is not None and row["step"] >= fitted]
        peak = max(once_fitted, key=lambda row: row[column], default=None)
        table.append(
            Reading(
                posterior=posterior,
                num_samples=curve[0]["num_samples"],
                accuracy=point[-1][ACCURACY],
                first_fitted_step=fitted,
                uncertainty=uncertainty,
                peak_uncertainty=None if peak is None else peak[column],
                peak_step=None if peak is None else peak["step"],
                per_log_classes=uncertainty / log(num_classes),
                of_peak=None if peak is None else _ratio(uncertainty, peak[column]),
                over_training=_ratio(uncertainty, training),
                entropy=point[-1][ENTROPY],
            )
        )
    return table


def separations(
    groups: Mapping[str, Sequence[Reading]], bounds: AccuracyBounds
) -> list[Separation]:
    """Every statistic of every posterior, group by group."""
    table = []
    for group, members in groups.items():
        for posterior in dict.fromkeys(reading.posterior for reading in members):
            own = [reading for reading in members if reading.posterior == posterior]
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
    members: Sequence[Reading], statistic: str, bounds: AccuracyBounds, fate: Fate
) -> list[float]:
    values = [getattr(r, statistic) for r in members if bounds.fate(r) == fate]
    return [value for value in values if value is not None]


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator > 0.0 else None
