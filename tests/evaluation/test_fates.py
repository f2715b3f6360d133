"""How a run ended, from its curve."""

import pytest

from epigrok.errors import UserError
from epigrok.evaluation import AccuracyBounds
from epigrok.evaluation.fates import ENDS, FATES, end_of_run


def curve(split: str, accuracies: list[float]) -> list[dict[str, object]]:
    shared = {"split": split, "posterior": "point", "num_samples": 1}
    values = {"total_final": 0.1, "epistemic_final": 0.0}
    return [
        {**shared, "step": 100 * k, "accuracy_final": accuracy, **values}
        for k, accuracy in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    ("accuracies", "end"),
    [
        ([0.0, 0.2, 0.97], "generalised"),
        ([0.0, 0.1, 0.2], "memorised"),
        ([0.0, 0.5, 0.7], "between"),
        ([0.0, 0.83, 0.19], "lost"),
        # Half of its best is not lost, and what was never learnt cannot be.
        ([0.0, 0.8, 0.4], "memorised"),
        ([0.0, 0.45, 0.1], "memorised"),
    ],
)
def test_the_end_of_a_run_follows_from_its_curve(accuracies: list[float], end: str) -> None:
    rows = curve("id_train", [0.0, 1.0, 1.0]) + curve("ood_val", accuracies)
    assert end_of_run(rows, "ood_val", AccuracyBounds()) == end
    assert end in ENDS


def test_a_run_that_never_fitted_is_unfitted_and_one_without_the_split_has_no_end() -> None:
    rows = curve("id_train", [0.0, 0.3, 0.4]) + curve("id_val", [0.0, 0.1, 0.1])
    assert end_of_run(rows, "id_val", AccuracyBounds()) == "unfitted"
    assert end_of_run(rows, "ood_val", AccuracyBounds()) is None


def test_bounds_decide_what_lies_between() -> None:
    strict, lenient = AccuracyBounds(), AccuracyBounds(generalised_from=0.6, memorised_below=0.6)
    assert strict.fate(0.7, 100) == "between"
    assert lenient.fate(0.7, 100) == "generalised"
    assert lenient.fate(0.59, 100) == "memorised"
    fates = [strict.fate(accuracy, 100) for accuracy in (0.95, 0.49, 0.5, 0.94)]
    assert fates == ["generalised", "memorised", "between", "between"]
    assert {strict.fate(1.0, None), *fates} == set(FATES)
    with pytest.raises(UserError, match=r"0\.9 and 0\.5"):
        AccuracyBounds(generalised_from=0.5, memorised_below=0.9)
