"""Finite systems drawn in the eigenbasis are real data sets."""

import numpy as np
import pytest

from epigrok.theory import flow
from epigrok.theory.delay import crossings
from epigrok.theory.excess_risk import log_relative_risk, log_relative_risk_of_spectrum
from epigrok.theory.linear_model import LinearModel, summary_model
from epigrok.theory.marchenko_pastur import sample_spectrum
from epigrok.theory.simulation import (
    FiniteSystem,
    residual_moments,
    risk_crossing,
    sample_system,
)
from epigrok.theory.threshold import PEAK_LEVEL


@pytest.mark.parametrize(("n", "d"), [(12, 5), (6, 9)])
def test_the_eigenbasis_gives_the_risks_of_the_data_set(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    model = LinearModel(n=n, sigma2=0.3, sigma_eps2=0.2, tau2=1.5, s0=0.7)
    X, w_star = rng.standard_normal((n, d)), rng.standard_normal(d)
    noise = rng.standard_normal(n)
    data = flow.eigen_flow(X, X @ w_star + noise, 0.3, 1.5, np.zeros(d), 0.7)
    has_data = data.nu > 0
    left = np.zeros(d)
    left[has_data] = (data.U.T @ X.T @ noise)[has_data] / np.sqrt(n * data.nu[has_data])
    system = FiniteSystem(
        model=model,
        nu=data.nu,
        w_star=data.U.T @ w_star,
        noise=left,
        noise_outside=float(noise @ noise - left @ left),
    )
    s = np.array([0.0, 0.5, 7.0, np.inf])
    risks = flow.risks_at(data, s / (2 * model.beta), w_star, 0.2)
    for which in ("emp", "gen"):
        exact = getattr(risks, which).total
        assert residual_moments(system, s, which).risk == pytest.approx(exact, rel=1e-10)


def test_large_systems_cross_where_the_limit_does() -> None:
    model = summary_model(4000)
    system = sample_system(model, 0.5, np.random.default_rng(1))
    eps_over_C0 = model.eps / model.initial_excess_risk(0.5)
    exact = crossings(0.5, model.gamma, eps_over_C0)
    for which in ("emp", "gen"):
        s = risk_crossing(system, PEAK_LEVEL * model.eps, which)
        assert s == pytest.approx(getattr(exact, f"s_{which}_peak"), rel=0.03)
        risk = residual_moments(system, s, which).risk
        assert risk == pytest.approx(PEAK_LEVEL * model.eps, rel=1e-10)


def test_crossings_that_do_not_exist() -> None:
    model = LinearModel(n=20, sigma2=0.1, sigma_eps2=0.1, eps=0.1, s0=1.0)
    system = sample_system(model, 0.5, np.random.default_rng(1))
    start = float(residual_moments(system, 0.0, "gen").risk)
    assert np.isnan(risk_crossing(system, 1.1 * start, "gen"))
    assert risk_crossing(system, 0.01, "gen") == np.inf


def test_the_limit_curves_do_not_depend_on_n() -> None:
    small, large = summary_model(100), summary_model(10_000)
    assert small.gamma == pytest.approx(large.gamma)
    ratios = [m.eps / m.initial_excess_risk(0.9) for m in (small, large)]
    assert ratios[0] == pytest.approx(ratios[1])
    assert small.covariance_share == pytest.approx(100 / 101)


def test_a_risk_that_dips_and_rises_again_has_crossed() -> None:
    model = LinearModel(n=200, sigma2=1e-4, sigma_eps2=1.0, tau2=1.0, s0=0.0, eps=1.0)
    system = sample_system(model, 0.9, np.random.default_rng(0))
    times = np.geomspace(1e-3, 1e6, 4000)
    risks = residual_moments(system, times, "gen").risk
    lowest, final = risks.min(), float(residual_moments(system, np.inf, "gen").risk)
    assert lowest < final
    level = 0.5 * (lowest + final)
    s = risk_crossing(system, level, "gen")
    assert residual_moments(system, s, "gen").risk == pytest.approx(level, rel=1e-10)
    assert times[np.argmax(risks <= level) - 1] <= s <= times[np.argmax(risks <= level)]


@pytest.mark.parametrize(("n", "d"), [(12, 5), (6, 9)])
def test_self_averaged_sums_are_exact_for_evenly_spread_gaps(n: int, d: int) -> None:
    """From the posterior widened by the same amount along every direction."""
    rng = np.random.default_rng(3)
    X, w_star = rng.standard_normal((n, d)), rng.standard_normal(d)
    sigma2, tau2, gap = 0.3, 1.5, 0.8
    posterior = np.linalg.inv(X.T @ X / sigma2 + np.eye(d) / tau2)
    mean = posterior @ X.T @ (X @ w_star) / sigma2
    data = flow.eigen_flow(X, X @ w_star, sigma2, tau2, mean, posterior + gap * np.eye(d))
    s = np.array([0.0, 0.5, 7.0, 300.0])
    risks = flow.risks_at(data, s * sigma2 / (2 * n), w_star, 0.0)
    for which in ("emp", "gen"):
        log_risk = log_relative_risk_of_spectrum(s, which, data.nu, sigma2 / (n * tau2))
        excess = gap * d / 2 * np.exp(log_risk)
        assert getattr(risks, which).quadratic == pytest.approx(excess, rel=1e-9)


@pytest.mark.parametrize("lam", [0.3, 0.9, 1.5])
def test_self_averaged_sums_tend_to_the_limit_curves(lam: float) -> None:
    n, s = 3000, np.array([0.1, 1.0, 5.0])
    nu = sample_spectrum(n, round(lam * n), np.random.default_rng(5))
    for which in ("emp", "gen"):
        finite = log_relative_risk_of_spectrum(s, which, nu, 1e-3)
        # Eigenvalues repel: sums over them scatter by 1/d, not by its square root.
        assert finite == pytest.approx(log_relative_risk(s, which, lam, 1e-3), abs=20 / n)


def test_a_finite_system_ends_with_its_slowest_mode() -> None:
    nu = np.array([0.2, 0.5, 3.0])
    for which, weight in (("emp", 0.2), ("gen", 1.0)):
        late = log_relative_risk_of_spectrum(1e5, which, nu, 0.1)
        assert late == pytest.approx(-0.3e5 + np.log(weight / 3), rel=1e-14)
    assert log_relative_risk_of_spectrum(1.0, "emp", [0.0, 0.0], 0.0) == -np.inf
