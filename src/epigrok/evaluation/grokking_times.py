"""When a run generalised, read off its tables: by accuracy, and by uncertainty without labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ACCURACY_THRESHOLD = 0.95
FITTED_THRESHOLD = 0.95
"""Accuracy on the training split from which it counts as fitted; uncertainty before says little:
it is small at initialisation too."""
COLLAPSE_SHARE = 0.25
"""Share of its peak down to which uncertainty has collapsed."""


@dataclass(frozen=True)
class GrokkingTimes:
    """Steps of one posterior on one split; None where it never happened."""

    split: str
    posterior: str
    num_samples: int
    fitted: int | None
    """First evaluation with the training split at 0.95 accuracy, holding to the end."""
    generalised: int | None
    """First evaluation with this split at 0.95 accuracy, holding to the end."""
    peak: int | None
    """Evaluation with the largest epistemic uncertainty of all, before fitting too: where fitting
    and generalising coincide, it comes before both. (`separation` looks only from fitting on.)"""
    collapsed: int | None
    """First evaluation, once fitted and past the peak, at a quarter of it or less to the end."""
    peak_epistemic: float
    final_epistemic: float

    @property
    def delay(self) -> int | None:
        """Steps from fitting the training split to generalising."""
        return _difference(self.generalised, self.fitted)

    @property
    def lead_of_peak(self) -> int | None:
        """Steps from the uncertainty's peak to generalisation by accuracy."""
        return _difference(self.generalised, self.peak)

    @property
    def lead_of_collapse(self) -> int | None:
        """Steps from the uncertainty's collapse to generalisation; negative when it trails."""
        return _difference(self.generalised, self.collapsed)


def curves_of(
    metrics: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """(posterior, split) -> its rows over training, all with the same number of samples."""
    rows = sorted(metrics, key=lambda row: row["step"])
    smallest: dict[str, int] = {}
    for row in rows:
        # The last step is evaluated a second time with more samples; curves compare like with like.
        known = smallest.get(row["posterior"], row["num_samples"])
        smallest[row["posterior"]] = min(known, row["num_samples"])
    curves: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["num_samples"] == smallest[row["posterior"]]:
            curves.setdefault((row["posterior"], row["split"]), []).append(row)
    return curves


def grokking_times(metrics: Iterable[Mapping[str, Any]]) -> list[GrokkingTimes]:
    """Times for every sampled posterior and split in a run's metrics."""
    curves = curves_of(metrics)
    names = [posterior for posterior, _ in curves]
    point = "point" if "point" in names or not names else names[0]
    fitted = _first_that_holds(
        curves.get((point, "id_train"), []), "accuracy_final", at_least=FITTED_THRESHOLD
    )
    return [
        _times(posterior, split, curve, curves.get((point, split), curve), fitted)
        for (posterior, split), curve in curves.items()
        if curve[0]["num_samples"] > 1
    ]


def _times(
    posterior: str,
    split: str,
    curve: Sequence[Mapping[str, Any]],
    accuracy_curve: Sequence[Mapping[str, Any]],
    fitted: int | None,
) -> GrokkingTimes:
    values = [row["epistemic_final"] for row in curve]
    peak_index = max(range(len(values)), key=values.__getitem__)
    after = [row for row in curve[peak_index:] if fitted is not None and row["step"] >= fitted]
    level = COLLAPSE_SHARE * values[peak_index]
    # What never was uncertain has nothing to collapse from.
    after = after if values[peak_index] > 0.0 else []
    return GrokkingTimes(
        split=split,
        posterior=posterior,
        num_samples=curve[0]["num_samples"],
        fitted=fitted,
        generalised=_first_that_holds(
            accuracy_curve, "accuracy_final", at_least=ACCURACY_THRESHOLD
        ),
        peak=curve[peak_index]["step"],
        collapsed=_first_that_holds(after, "epistemic_final", at_most=level),
        peak_epistemic=values[peak_index],
        final_epistemic=values[-1],
    )


def _first_that_holds(
    curve: Sequence[Mapping[str, Any]],
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
