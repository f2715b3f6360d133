"""Grokking times on curves drawn by hand."""

from typing import Any

from epigrok.evaluation import grokking_times

STEPS = [0, 100, 200, 300, 400, 500, 600]


def rows(
    train: list[float], accuracy: list[float], epistemic: list[float], posterior: str = "ivon"
) -> list[dict[str, Any]]:
    table = []
    for step, fit, acc, eu in zip(STEPS, train, accuracy, epistemic):
        base = {"step": step, "accuracy_final": acc, "epistemic_final": 0.0}
        table.append(base | {"split": "id_val", "posterior": "point", "num_samples": 1})
        table.append(
            base
            | {"split": "id_train", "posterior": "point", "num_samples": 1}
            | {"accuracy_final": fit}
        )
        sampled = base | {"split": "id_val", "posterior": posterior, "num_samples": 16}
        table.append(sampled | {"epistemic_final": eu})
    return table


FITTED = [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_a_textbook_run_has_all_its_times() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [0.01, 0.2, 0.5, 0.6, 0.3, 0.1, 0.05])
    (times,) = grokking_times(curve)
    assert (times.split, times.posterior) == ("id_val", "ivon")
    assert (times.fitted, times.generalised) == (200, 500)
    assert (times.peak, times.collapsed) == (300, 500)
    assert (times.lead_of_peak, times.lead_of_collapse) == (200, 0)
    assert (times.peak_epistemic, times.final_epistemic) == (0.6, 0.05)


def test_a_threshold_must_hold_until_the_end() -> None:
    curve = rows(FITTED, [0, 0, 0.99, 0.2, 0.97, 0.98, 1.0], [0.1, 0.9, 0.1, 0.5, 0.2, 0.1, 0.1])
    (times,) = grokking_times(curve)
    assert times.generalised == 400
    assert times.collapsed == 400


def test_what_never_happens_has_no_time() -> None:
    curve = rows(FITTED, [0.0] * 7, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    (times,) = grokking_times(curve)
    assert times.generalised is None
    assert times.collapsed is None
    assert times.lead_of_peak is None
    assert times.peak == 600


def test_uncertainty_is_not_read_before_the_training_set_is_fitted() -> None:
    curve = rows([0.0] * 7, [0.0] * 7, [0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    (times,) = grokking_times(curve)
    assert times.fitted is None
    assert times.collapsed is None


def test_a_second_evaluation_with_more_samples_is_not_mixed_in() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [0.01, 0.2, 0.5, 0.6, 0.3, 0.1, 0.05])
    extra = {"step": 600, "split": "id_val", "posterior": "ivon", "num_samples": 64}
    (times,) = grokking_times([*curve, extra | {"accuracy_final": 1.0, "epistemic_final": 9.0}])
    assert times.peak == 300
    assert times.num_samples == 16


def test_rows_may_come_in_any_order() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [0.01, 0.2, 0.5, 0.6, 0.3, 0.1, 0.05])
    assert grokking_times(curve[::-1]) == grokking_times(curve)


def test_what_never_was_uncertain_does_not_collapse() -> None:
    (times,) = grokking_times(rows(FITTED, [1.0] * 7, [0.0] * 7))
    assert times.collapsed is None
