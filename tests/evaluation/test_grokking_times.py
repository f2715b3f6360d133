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
        # Not the accuracy that counts: that is the point's.
        table.append(sampled | {"epistemic_final": eu, "accuracy_final": 0.3})
    return table


FITTED = [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_a_textbook_run_has_all_its_times() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [0.01, 0.2, 0.5, 0.6, 0.3, 0.1, 0.05])
    (times,) = grokking_times(curve)
    assert (times.split, times.posterior) == ("id_val", "ivon")
    assert (times.fitted_step, times.generalised_step) == (200, 500)
    assert (times.peak_step, times.collapsed_step) == (300, 500)
    assert (times.delay, times.lead_of_peak, times.lead_of_collapse) == (300, 200, 0)
    assert (times.peak_epistemic, times.final_epistemic) == (0.6, 0.05)


def test_a_threshold_must_hold_until_the_end() -> None:
    curve = rows(FITTED, [0, 0, 0.99, 0.2, 0.97, 0.98, 1.0], [0.1, 0.9, 0.1, 0.5, 0.2, 0.1, 0.1])
    (times,) = grokking_times(curve)
    assert times.generalised_step == 400
    assert times.collapsed_step == 400


def test_what_never_happens_has_no_time() -> None:
    curve = rows(FITTED, [0.0] * 7, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    (times,) = grokking_times(curve)
    assert times.generalised_step is None
    assert times.collapsed_step is None
    assert times.delay is times.lead_of_peak is times.lead_of_collapse is None
    assert times.peak_step == 600


def test_uncertainty_is_not_read_before_the_training_set_is_fitted() -> None:
    curve = rows([0.0] * 7, [0.0] * 7, [0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    (times,) = grokking_times(curve)
    assert times.fitted_step is None
    assert times.collapsed_step is None


def test_each_sampled_posterior_has_its_own_times_and_the_point_has_none() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [0.01, 0.2, 0.5, 0.6, 0.3, 0.1, 0.05])
    other = [
        row | {"posterior": "laplace", "epistemic_final": 0.3}
        for row in curve
        if row["posterior"] == "ivon"
    ]
    ivon, laplace = grokking_times([*curve, *other])
    assert (ivon.posterior, ivon.peak_step, ivon.num_samples) == ("ivon", 300, 16)
    assert (laplace.posterior, laplace.peak_step, laplace.collapsed_step) == ("laplace", 100, None)
    assert laplace.generalised_step == ivon.generalised_step


def test_an_untrained_network_is_not_at_its_peak() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [9.0, 0.2, 0.5, 0.6, 0.3, 0.14, 0.1])
    (times,) = grokking_times(curve)
    assert (times.peak_step, times.peak_epistemic, times.collapsed_step) == (300, 0.6, 500)


def test_a_run_without_the_point_is_judged_by_its_first_posterior() -> None:
    curve = rows(FITTED, [0.0] * 7, [0.1] * 7)
    sampled = [
        row | {"accuracy_final": row["step"] / 600} for row in curve if row["num_samples"] > 1
    ]
    (times,) = grokking_times(sampled)
    assert (times.fitted_step, times.generalised_step) == (None, 600)


def test_no_rows_have_no_times() -> None:
    assert grokking_times([]) == []


def test_rows_may_come_in_any_order() -> None:
    curve = rows(FITTED, [0, 0, 0, 0.1, 0.5, 0.96, 1.0], [0.01, 0.2, 0.5, 0.6, 0.3, 0.1, 0.05])
    assert grokking_times(curve[::-1]) == grokking_times(curve)


def test_what_never_was_uncertain_neither_peaks_nor_collapses() -> None:
    """Its first row was once its peak, so it seemed to lead."""
    (times,) = grokking_times(rows(FITTED, [1.0] * 7, [0.0] * 7))
    assert (times.peak_step, times.collapsed_step, times.lead_of_peak) == (None, None, None)
