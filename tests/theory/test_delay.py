"""Crossing times, delays, their bounds and formulas."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epigrok.theory import asymptotics, delay, excess_risk
from epigrok.theory.threshold import PEAK_LEVEL

below_one = st.floats(0.01, 0.999)
aspect_ratios = st.floats(0.01, 4.0)
gammas = st.one_of(st.just(0.0), st.floats(-8.0, 1.0).map(lambda x: 10.0**x))
levels = st.floats(-12.0, -0.001).map(lambda x: 10.0**x)


@given(aspect_ratios, gammas)
def test_both_risks_start_at_C0(lam: float, gamma: float) -> None:
    for which in ("emp", "gen"):
        assert excess_risk.log_relative_risk(0.0, which, lam, gamma) == 0.0
        alpha = 2.0 * gamma
        start = excess_risk.log_excess_risk(0.0, which, lam, 2.0, alpha, 5.0)
        assert start == pytest.approx(np.log(5.0))


@given(aspect_ratios, gammas, levels)
def test_the_risk_is_at_its_level_when_it_crosses(lam: float, gamma: float, level: float) -> None:
    for which in ("emp", "gen"):
        s = excess_risk.crossing_s(level, which, lam, gamma)
        if np.isinf(s):
            assert which == "gen"
            assert gamma == 0.0
            assert level <= 1 - 1 / lam
        else:
            log_risk = excess_risk.log_relative_risk(s, which, lam, gamma)
            assert log_risk == pytest.approx(np.log(level), rel=1e-13)


@given(aspect_ratios, gammas, levels)
def test_generalisation_never_leads_and_later_levels_come_later(
    lam: float, gamma: float, level: float
) -> None:
    emp, gen = (excess_risk.crossing_s([level, level / 3], w, lam, gamma) for w in ("emp", "gen"))
    assert (gen >= emp * (1 - 1e-12)).all()
    assert emp[1] > emp[0]
    assert gen[1] > gen[0] or np.isinf(gen[1])


@given(below_one, gammas, levels)
def test_bounds_enclose_the_delay_below_the_paper_formula(
    lam: float, gamma: float, level: float
) -> None:
    bounds, leading = delay.delay_bounds(level, lam, gamma), delay.delay_leading(lam, gamma)
    assert 0.0 <= bounds.lower <= delay.delay_s(level, lam, gamma) <= bounds.upper <= leading


@given(st.floats(1.01, 4.0), st.floats(-6.0, 0.0).map(lambda x: 10.0**x), levels)
def test_bounds_enclose_the_delay_with_more_weights_than_data(
    lam: float, gamma: float, level: float
) -> None:
    bounds = delay.delay_bounds(level, lam, gamma)
    assert bounds.lower <= delay.delay_s(level, lam, gamma) <= bounds.upper
    gen = excess_risk.crossing_s(level, "gen", lam, gamma)
    assert asymptotics.crossing_atom(level, lam, gamma) <= gen * (1 + 1e-12)


@given(aspect_ratios, gammas, levels)
def test_the_delay_is_the_difference_of_the_times(lam: float, gamma: float, level: float) -> None:
    emp, gen = (excess_risk.crossing_s(level, which, lam, gamma) for which in ("emp", "gen"))
    assert emp + delay.delay_s(level, lam, gamma) == pytest.approx(gen, rel=1e-14)


def test_a_delay_keeps_its_digits_when_it_is_tiny() -> None:
    """For few weights R - 1 = lambda s to leading order, and so is the delay."""
    lam = np.array([1e-12, 1e-17, 1e-40, 1e-200])
    times = delay.crossings(lam, 0.0, 1e-3)
    assert times.delta_s_peak == pytest.approx(lam * times.s_emp_peak, rel=1e-11, abs=0.0)
    strong = delay.crossings(0.3, 1e8, 1e-3)
    leading = 0.3 * strong.s_emp_peak / 1e8
    assert strong.delta_s_peak == pytest.approx(leading, rel=2e-8, abs=0.0)


@given(below_one, gammas, levels)
def test_power_laws_bound_the_crossings_from_above(lam: float, gamma: float, level: float) -> None:
    for which in ("emp", "gen"):
        exact = excess_risk.crossing_s(level, which, lam, gamma)
        upper = asymptotics.crossing_upper_bound(level, which, lam, gamma)
        assert exact <= upper * (1 + 1e-12)
        assert upper <= asymptotics.crossing_lambert(level, which, lam, gamma) * (1 + 1e-12)


@given(aspect_ratios, gammas, levels, st.floats(-3.0, 3.0).map(lambda x: 10.0**x))
def test_rescaling_all_variances_only_changes_the_unit_of_time(
    lam: float, gamma: float, level: float, scale: float
) -> None:
    beta, C0 = 30.0, 7.0
    for which in ("emp", "gen"):
        t = excess_risk.crossing_time(level * C0, which, lam, beta, gamma * beta, C0)
        # sigma2, tau2, eps and the initial gaps times `scale`: rates are divided by it.
        rescaled = excess_risk.crossing_time(
            scale * level * C0, which, lam, beta / scale, gamma * beta / scale, scale * C0
        )
        assert rescaled == pytest.approx(scale * t, rel=1e-9)


@given(aspect_ratios, gammas, st.floats(-3.0, 4.0).map(lambda x: 10.0**x))
def test_decay_rates_are_derivatives_and_decrease(lam: float, gamma: float, s: float) -> None:
    for which in ("emp", "gen"):
        h = 1e-3 * s / (1 + s)
        around = excess_risk.log_relative_risk([s - h, s + h], which, lam, gamma)
        slope = (around[1] - around[0]) / (2 * h)
        rate = excess_risk.decay_rate(s, which, lam, gamma)
        assert -slope == pytest.approx(rate, rel=1e-5, abs=1e-9)
        assert excess_risk.decay_rate(2 * s, which, lam, gamma) <= rate * (1 + 1e-12)


@pytest.mark.parametrize(
    ("lam", "gamma", "level"),
    [(0.2, 0.0, 0.03), (0.77, 3e-4, 2e-5), (1.0, 0.0, 1e-3), (2.2, 0.05, 1e-4)],
)
def test_crossings_equal_mpmath(lam: float, gamma: float, level: float) -> None:
    with mpmath.workdps(30):
        lam_, edge = mpmath.mpf(lam), (1 - mpmath.sqrt(mpmath.mpf(lam))) ** 2
        width = 4 * mpmath.sqrt(lam_)

        def log_risk(s: mpmath.mpf, power: int) -> mpmath.mpf:
            cuts = sorted({mpmath.mpf(0), *(x for x in (edge, 1 / s, 9 / s, 50 / s) if x < width)})
            integral = mpmath.quad(
                lambda u: mpmath.sqrt(u * (width - u)) * (edge + u) ** (power - 1)
                * mpmath.exp(-s * u) if u or edge else mpmath.mpf(0),
                [*cuts, width],
            )  # fmt: skip
            atom = max(0, 1 - 1 / lam_) if power == 0 else 0
            continuous = integral / (2 * mpmath.pi * lam_) * mpmath.exp(-edge * s)
            return mpmath.log(continuous + atom) - gamma * s - mpmath.log(mpmath.mpf(level))

        for which, power in (("emp", 1), ("gen", 0)):
            s = excess_risk.crossing_s(level, which, lam, gamma)
            exact = mpmath.findroot(
                lambda x, power=power: log_risk(x, power), (s, s * 1.001), tol=1e-40
            )
            assert s == pytest.approx(float(exact), rel=1e-12)


def test_times_beyond_floats_are_not_never() -> None:
    assert delay.crossings(1.0, 0.0, 1e-140).s_gen_peak == pytest.approx(2.635187586708e279)
    level = 1e-300
    assert excess_risk.crossing_s(level, "gen", 1.0, 0.0) == np.inf
    assert not excess_risk.is_never_crossed(level, "gen", 1.0, 0.0)
    assert excess_risk.is_never_crossed(level, "gen", 1.5, 0.0)
    assert not excess_risk.is_never_crossed(level, "gen", 1.5, 1e-300)
    assert not excess_risk.is_never_crossed(level, "emp", 1.5, 0.0)


def test_levels_above_the_start_are_never_crossed() -> None:
    for function in (excess_risk.crossing_s, asymptotics.crossing_lambert,
                     asymptotics.crossing_edge_newton):  # fmt: skip
        for which in ("emp", "gen"):
            assert np.isnan(function([1.0, 2.0, np.inf], which, 0.5, 0.1)).all()
    times = delay.crossings(0.5, 0.0, [0.9, 0.92, 9.0])
    assert np.isnan(times.s_emp_peak).tolist() == [False, True, True]
    assert np.isnan(times.s_gen_peak).tolist() == [False, True, True]
    assert np.isnan(times.s_gen_grok).tolist() == [False, False, True]
    assert np.isnan(delay.delay_bounds(1.5, 0.5, 0.0)).all()


def test_directions_without_data_are_never_learned_without_a_prior() -> None:
    times = delay.crossings(1.5, 0.0, 1e-3)
    assert times.s_gen_peak == times.s_gen_grok == np.inf
    assert np.isfinite(times.s_emp_peak)
    assert times.delta_s_peak == np.inf
    assert delay.delay_bounds(1e-3, 1.5, 0.0).upper == np.inf
    just_above = excess_risk.crossing_s(1 / 3 + 1e-3, "gen", 1.5, 0.0)
    assert np.isfinite(just_above)
    assert excess_risk.crossing_s(1 / 3, "gen", 1.5, 0.0) == np.inf


def test_the_paper_formula_is_not_evaluated_without_an_edge() -> None:
    assert np.isnan(delay.delay_leading([1.0, 1.5], 0.0)).all()
    assert np.isnan(delay.crossings_lambert(1.5, 0.1, 1e-3).s_gen_peak)
    for gamma in (0.0, 1e-4, 0.4):
        assert delay.crossings_lambert(1.0, gamma, 1e-3).s_gen_peak == np.inf


def test_delay_saturates_as_lambda_approaches_one() -> None:
    level = 1e-3 * PEAK_LEVEL
    near_one = delay.crossings(1 - 1e-9, 0.0, 1e-3)
    emp = (1 / (2 * np.sqrt(np.pi) * level)) ** (2 / 3)
    assert near_one.s_gen_peak == pytest.approx(1 / (np.pi * level**2), rel=1e-3)
    assert near_one.s_emp_peak == pytest.approx(emp, rel=1e-2)
    assert delay.delay_leading(1 - 1e-9, 0.0) > 1e14 * near_one.delta_s_peak


def test_the_paper_formula_is_the_limit_of_small_tolerances() -> None:
    levels = 10.0 ** np.array([-3.0, -10.0, -50.0, -250.0])
    emp, gen = (excess_risk.crossing_s(levels, which, 0.3, 0.0) for which in ("emp", "gen"))
    ratio = delay.delay_leading(0.3, 0.0) / (gen - emp)
    assert (np.diff(ratio) < 0).all()
    assert 1.0 < ratio[-1] < 1.01


@pytest.mark.parametrize(
    ("eps", "one_step", "three_steps"), [(1e-6, 1.2e-3, 3e-4), (1e-3, 0.076, 4e-3)]
)
def test_edge_newton_has_its_stated_accuracy(
    eps: float, one_step: float, three_steps: float
) -> None:
    lam = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99])
    exact = delay.crossings(lam, 0.0, eps)
    for steps, error in ((1, one_step), (3, three_steps)):
        formula = delay.crossings_edge_newton(lam, 0.0, eps, steps=steps)
        for event in ("delta_s_peak", "delta_s_grok"):
            assert getattr(formula, event) == pytest.approx(getattr(exact, event), rel=error)


@pytest.mark.parametrize("lam", [1e-300, 0.01, 0.5, 1 - 1e-12, 1.0, 1 + 1e-9, 4.0, 1e300])
@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-9, 1.0, 100.0, 1e300])
def test_extreme_parameters_cause_no_warning(lam: float, gamma: float) -> None:
    eps = np.array([1e-306, 1e-12, 1e-3, 0.5, 0.9099, 1.0, 1e308])
    for times in (
        delay.crossings(lam, gamma, eps),
        delay.crossings_lambert(lam, gamma, eps),
        delay.crossings_edge_newton(lam, gamma, eps),
    ):
        for values in times[:4]:
            assert (values[~np.isnan(values)] >= 0).all()
    s = [0.0, 1e-300, 1e-12, 1.0, 1e9, 1e300]
    for which in ("emp", "gen"):
        assert (np.asarray(excess_risk.log_relative_risk(s, which, lam, gamma)) <= 0.0).all()
    assert not np.isnan(delay.delay_bounds(eps[:4], lam, gamma)).any()
