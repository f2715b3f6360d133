"""Which uncertainty separates generalised from memorised runs, on curves drawn by hand."""

from math import inf, log
from typing import Any

from epigrok.evaluation import (
    AccuracyBounds,
    FinalUncertainty,
    final_uncertainties,
    separations,
)
from epigrok.evaluation.separation import STATISTICS

STEPS = (0, 100, 200, 300)


def row(step: int, split: str, posterior: str, num_samples: int, **values: float) -> dict[str, Any]:
    where = {"step": step, "split": split, "posterior": posterior, "num_samples": num_samples}
    return {**where, **{f"{name}_final": value for name, value in values.items()}}


def textbook_run() -> list[dict[str, Any]]:
    """Fitted at step 100, generalised at 300; the largest uncertainty is the one at the start.

    `probit` predicts without samples, so there is no uncertainty of it to read.
    """
    table = []
    fit, held_out = (0.1, 0.96, 0.9, 1.0), (0.0, 0.1, 0.5, 0.98)
    entropy, epistemic = (3.0, 1.0, 2.0, 0.5), (0.9, 0.6, 0.8, 0.2)
    for i, step in enumerate(STEPS):
        table += [
            row(step, "id_train", "point", 1, accuracy=fit[i], total=0.25, epistemic=0.0),
            row(step, "id_val", "point", 1, accuracy=held_out[i], total=entropy[i], epistemic=0.0),
            row(step, "id_train", "ivon", 16, accuracy=fit[i], total=1.0, epistemic=0.05),
            row(step, "id_val", "ivon", 16, accuracy=0.3, total=1.0, epistemic=epistemic[i]),
            row(step, "id_train", "probit", 1, accuracy=0.3, total=1.0, epistemic=0.0),
            row(step, "id_val", "probit", 1, accuracy=0.3, total=1.0, epistemic=0.0),
        ]
    return table


def test_a_textbook_run_is_read_as_by_hand() -> None:
    point, ivon = final_uncertainties(textbook_run(), "id_val", num_classes=31)
    assert ivon == FinalUncertainty(
        posterior="ivon",
        num_samples=16,
        accuracy=0.98,
        first_fitted_step=100,
        uncertainty=0.2,
        peak_uncertainty=0.8,
        peak_once_fitted_step=200,
        per_log_classes=0.2 / log(31),
        of_peak=0.2 / 0.8,
        over_training=0.2 / 0.05,
        entropy=0.5,
    )
    assert (point.posterior, point.uncertainty, point.entropy) == ("point", 0.5, 0.5)
    assert (
        point.peak_uncertainty,
        point.peak_once_fitted_step,
        point.of_peak,
        point.over_training,
    ) == (
        2.0,
        200,
        0.25,
        2,
    )


def test_what_was_never_fitted_has_no_peak() -> None:
    table = [r | {"accuracy_final": 0.5} for r in textbook_run()]
    found = final_uncertainties(table, "id_val", num_classes=31)
    assert [reading.posterior for reading in found] == ["point", "ivon"]
    for reading in found:
        assert reading.first_fitted_step is reading.peak_uncertainty is None
        assert reading.peak_once_fitted_step is reading.of_peak is None


def test_no_uncertainty_to_compare_with_leaves_a_ratio_out() -> None:
    table = [r | {"epistemic_final": 0.0} for r in textbook_run()]
    _, ivon = final_uncertainties(table, "id_val", num_classes=31)
    assert ivon.of_peak is None
    assert ivon.over_training is None
    assert ivon.per_log_classes == 0.0


def test_a_run_without_the_split_or_the_point_says_nothing() -> None:
    assert final_uncertainties(textbook_run(), "ood_val", num_classes=31) == []
    sampled = [r for r in textbook_run() if r["posterior"] != "point"]
    assert final_uncertainties(sampled, "id_val", num_classes=31) == []


def reading(accuracy: float, value: float, of_peak: float | None = 1.0) -> FinalUncertainty:
    return FinalUncertainty("ivon", 16, accuracy, 100, 1.0, 1.0, 200, value, of_peak, value, 1.0)


def test_separations_are_those_found_by_hand() -> None:
    groups = {
        "apart": [reading(1.0, 0.1), reading(0.95, 0.2), reading(0.49, 0.8), reading(0.0, 0.9)],
        "mixed": [reading(1.0, 0.1), reading(1.0, 0.6), reading(0.1, 0.3), reading(0.7, 0.0)],
        "alone": [reading(1.0, 0.1, of_peak=None), reading(0.7, 0.5)],
        "zero": [reading(1.0, 0.0), reading(0.1, 0.5)],
    }
    found = {(s.group, s.statistic): s for s in separations(groups, AccuracyBounds())}
    assert set(found) == {(group, statistic) for group in groups for statistic in STATISTICS}
    apart = found["apart", "per_log_classes"]
    assert (apart.num_generalised, apart.num_memorised) == (2, 2)
    assert (apart.largest_generalised, apart.smallest_memorised) == (0.2, 0.8)
    assert (apart.margin, apart.separates) == (4.0, True)
    # Equal values are not apart.
    assert (found["apart", "of_peak"].margin, found["apart", "of_peak"].separates) == (1.0, False)
    mixed = found["mixed", "over_training"]
    assert (mixed.num_memorised, mixed.margin, mixed.separates) == (1, 0.5, False)
    alone = found["alone", "of_peak"]
    assert (alone.num_generalised, alone.num_memorised) == (0, 0)
    assert alone.largest_generalised is alone.margin is alone.separates is None
    assert found["zero", "per_log_classes"].margin == inf
