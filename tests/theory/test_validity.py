"""The validity report says what holds and why not."""

import numpy as np
import pytest

from epigrok.theory.delay import crossings
from epigrok.theory.linear_model import summary_model
from epigrok.theory.validity import ValidityReport, effective_modes, validity_report


def verdicts(report: ValidityReport) -> dict[str, bool | None]:
    return {assumption.name: assumption.holds for assumption in report.assumptions}


def test_everything_holds_in_the_paper_regime() -> None:
    report = validity_report(0.3, 0.0, 1e-40, 10**40, 1e-4, 0.99)
    assert report.all_hold
    assert set(verdicts(report).values()) == {True}


def test_missing_information_is_unknown_not_false() -> None:
    report = validity_report(0.3, 0.0, 1e-40)
    assert report.all_hold
    assert verdicts(report)["many_modes"] is None
    assert verdicts(report)["negligible_floor"] is None


@pytest.mark.parametrize(
    ("parameters", "failing"),
    [
        ((0.3, 0.0, 1.0), "peak_exists"),
        ((0.3, 0.0, 9.0), "threshold_is_ahead"),
        ((1.5, 0.0, 1e-3), "peak_is_reached"),
        ((1.5, 0.1, 1e-3), "fewer_weights_than_data"),
        ((0.9, 0.0, 1e-3), "late_time"),
        ((0.9, 1e-3, 1e-6), "uniform_weights"),
        ((0.9, 0.0, 1e-6, 900), "many_modes"),
        ((0.9, 0.0, 1e-6, None, 0.1), "negligible_floor"),
        ((0.9, 0.0, 1e-6, None, None, 0.5), "covariance_carries_risk"),
    ],
)
def test_each_assumption_can_fail(parameters: tuple[float, ...], failing: str) -> None:
    report = validity_report(*parameters)
    assert verdicts(report)[failing] is False
    assert not report.all_hold
    failed = next(item for item in report.assumptions if item.name == failing)
    assert failed.meaning.startswith("otherwise ")


def test_without_a_peak_the_flag_explains_the_nan() -> None:
    report = validity_report(0.5, 0.0, 0.92, 100)
    assert np.isnan(report.nu_minus_s_emp)
    assert report.effective_modes is None
    assert verdicts(report)["peak_exists"] is False
    assert verdicts(report)["late_time"] is None


def test_modes_of_the_summary_model() -> None:
    model = summary_model()
    d = model.num_weights(0.9)
    for eps_over_C0, modes in ((1e-3, 10.0), (1e-6, 1.8)):
        s = crossings(0.9, 0.0, eps_over_C0).s_gen_peak
        assert effective_modes(s, 0.9, d) == pytest.approx(modes, rel=0.05)
    assert effective_modes(0.0, 0.9, d) == pytest.approx(d)


@pytest.mark.parametrize("lam", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_reports_exist_for_every_regime(lam: float, gamma: float) -> None:
    for eps_over_C0 in (1e-12, 1e-3, 1.0, 100.0):
        assert len(validity_report(lam, gamma, eps_over_C0, 50).assumptions) == 9
