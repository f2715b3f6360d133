"""The well-specified model against simulated systems and its own limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epigrok.theory.bayes_risk import bayes_excess_risk, bayes_risk_floor, isotropic_trace
from epigrok.theory.excess_risk import log_relative_risk
from epigrok.theory.linear_model import LinearModel
from epigrok.theory.simulation import residual_moments, sample_system


def test_mean_risks_equal_simulated_systems() -> None:
    n, lam, gamma, ratio = 240, 0.6, 0.13, 0.5
    sigma2 = gamma * n
    model = LinearModel(n=n, sigma2=sigma2, sigma_eps2=sigma2, s0=ratio)
    s = np.array([0.0, 1.0, 10.0])
    unit = model.num_weights(lam) * model.tau2
    floor = bayes_risk_floor(lam, gamma)
    for which, limit in (
        ("gen", floor.gen_minus_noise_over_d_tau2 * unit + sigma2 / 2),
        ("emp", floor.emp_over_sigma2 * sigma2),
    ):
        systems = (sample_system(model, lam, np.random.default_rng(k)) for k in range(400))
        draws = np.array([residual_moments(system, s, which).risk for system in systems])
        error = draws.std(axis=0) / np.sqrt(len(draws))
        exact = bayes_excess_risk(s, which, lam, gamma, ratio).total * unit + limit
        assert (np.abs(draws.mean(axis=0) - exact) < 4 * error).all(), which


@given(st.floats(0.01, 4.0), st.floats(-6.0, 0.0).map(lambda x: 10.0**x), st.floats(0.0, 50.0))
def test_risks_start_where_the_definition_says(lam: float, gamma: float, ratio: float) -> None:
    gen = bayes_excess_risk(0.0, "gen", lam, gamma, ratio).total
    floor = bayes_risk_floor(lam, gamma).gen_minus_noise_over_d_tau2
    assert gen + floor == pytest.approx((1 + ratio) / 2, rel=1e-11)


def test_small_gamma_recovers_the_uniform_weight_model() -> None:
    s = np.array([0.0, 3.0, 30.0])
    for which in ("emp", "gen"):
        exact = bayes_excess_risk(s, which, 0.5, 1e-12, 100.0)
        uniform = 50.5 * np.exp(log_relative_risk(s, which, 0.5, 1e-12))
        assert exact.total == pytest.approx(uniform, rel=1e-9)


def test_the_linear_term_wins_in_the_end() -> None:
    early, late = (bayes_excess_risk(s, "emp", 0.5, 1e-4, 1.0) for s in (10.0, 500.0))
    assert early.linear < 0.1 * early.quadratic
    assert late.linear > 10.0 * late.quadratic


def test_excess_risk_can_be_negative() -> None:
    gen = bayes_excess_risk([50.0, 100.0], "gen", 0.9, 0.01, 0.0).total
    assert gen[0] > 0 > gen[1]


@given(st.floats(0.01, 4.0), st.floats(0.0, 1.0), st.floats(0.0, 10.0))
def test_trace_starts_at_its_start_and_stays_positive(lam: float, gamma: float, s0: float) -> None:
    trace = isotropic_trace([0.0, 1e-12, 1.0, 1e9], lam, gamma, s0)
    assert trace[0] == pytest.approx(s0, rel=1e-13)
    assert (trace[1:] > 0).all()


def test_trace_of_a_finite_system() -> None:
    model = LinearModel(n=2000, sigma2=2000.0, tau2=1000.0, s0=0.5)
    system = sample_system(model, 0.5, np.random.default_rng(0))
    variance = residual_moments(system, 4.0, "gen").variance
    limit = isotropic_trace(4.0, 0.5, model.gamma, model.beta * model.s0)
    assert model.beta * variance / system.nu.size == pytest.approx(limit, rel=2e-3)
