"""How a run ended, from its curve."""

import pytest

from epigrok.evaluation import AccuracyBounds
from epigrok.evaluation.fates import ENDS, end_of_run


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
def test_ends_are_told_apart(accuracies: list[float], end: str) -> None:
    rows = curve("id_train", [0.0, 1.0, 1.0]) + curve("ood_val", accuracies)
    assert end_of_run(rows, "ood_val", AccuracyBounds()) == end
    assert end in ENDS


def test_a_run_that_never_fitted_is_told_and_one_without_the_split_is_not() -> None:
    rows = curve("id_train", [0.0, 0.3, 0.4]) + curve("id_val", [0.0, 0.1, 0.1])
    assert end_of_run(rows, "id_val", AccuracyBounds()) == "unfitted"
    assert end_of_run(rows, "ood_val", AccuracyBounds()) is None
