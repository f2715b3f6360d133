"""The flow against an ODE solver, the posterior, Monte Carlo and its own identities."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from epigrok.theory import flow, predictive
from epigrok.theory.flow import EigenFlow, eigen_flow
from epigrok.theory.threshold import eu_closure, eu_closure2

seeds = st.integers(0, 10_000)


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    w_star: np.ndarray
    mu0: np.ndarray
    Sigma0: np.ndarray
    A: np.ndarray
    b: np.ndarray
    flow: EigenFlow


def random_problem(seed: int, n: int = 7, d: int = 4) -> Problem:
    """Correlated inputs, noisy targets and a start that commutes with nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    w_star, mu0 = rng.standard_normal((2, d))
    y = X @ w_star + 0.3 * rng.standard_normal(n)
    root = rng.standard_normal((d, d))
    Sigma0 = root @ root.T / d
    sigma2, tau2 = 0.5, 1.7
    A = X.T @ X / sigma2 + np.eye(d) / tau2
    problem_flow = eigen_flow(X, y, sigma2, tau2, mu0, Sigma0)
    return Problem(X, y, w_star, mu0, Sigma0, A, X.T @ y / sigma2, problem_flow)


@pytest.mark.parametrize(("n", "d"), [(9, 4), (4, 4), (3, 5)])
def test_trajectory_equals_an_ode_solver(n: int, d: int) -> None:
    p = random_problem(1, n, d)

    def velocity(_: float, state: np.ndarray) -> np.ndarray:
        mu, Sigma = state[:d], state[d:].reshape(d, d)
        return np.concatenate(
            [p.b - p.A @ mu, (2 * np.eye(d) - p.A @ Sigma - Sigma @ p.A).reshape(-1)]
        )

    times = [0.0, 0.03, 0.2, 1.0]
    start = np.concatenate([p.mu0, p.Sigma0.reshape(-1)])
    solution = solve_ivp(velocity, (0.0, 1.0), start, "DOP853", times, rtol=1e-12, atol=1e-13).y.T
    assert flow.mean_at(p.flow, times) == pytest.approx(solution[:, :d], abs=1e-10)
    assert flow.cov_at(p.flow, times).reshape(4, -1) == pytest.approx(solution[:, d:], abs=1e-10)


@given(seeds, st.floats(-2.0, 1.0).map(lambda x: 10.0**x))
def test_the_ode_residual_vanishes(seed: int, scale: float) -> None:
    p = random_problem(seed)
    h = 0.02 / p.flow.a[-1]
    t = 4 * h + scale / p.flow.a[-1]
    times = t + h * np.array([-4, -3, -2, -1, 1, 2, 3, 4])
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 4 / 5, -1 / 5, 4 / 105, -1 / 280]) / h
    mu, Sigma = flow.mean_at(p.flow, t), flow.cov_at(p.flow, t)
    mean_velocity = np.tensordot(weights, flow.mean_at(p.flow, times), 1)
    cov_velocity = np.tensordot(weights, flow.cov_at(p.flow, times), 1)
    unit = p.flow.a[-1]
    mean_residual = mean_velocity - (p.b - p.A @ mu)
    cov_residual = cov_velocity - (2 * np.eye(4) - p.A @ Sigma - Sigma @ p.A)
    assert np.abs(mean_residual).max() < 1e-10 * unit * max(1.0, np.abs(mu).max())
    assert np.abs(cov_residual).max() < 1e-10 * unit * max(1.0, np.abs(Sigma).max())
    trace_velocity = 2 * np.trace(np.eye(4) - p.A @ Sigma)
    assert flow.trace_rate_at(p.flow, t) == pytest.approx(trace_velocity, abs=1e-10 * unit)


@given(seeds)
def test_flowing_on_from_a_later_state_gives_the_same_path(seed: int) -> None:
    p = random_problem(seed)
    mu, Sigma = flow.mean_at(p.flow, 0.1), flow.cov_at(p.flow, 0.1)
    later = eigen_flow(p.X, p.y, p.flow.sigma2, p.flow.tau2, mu, (Sigma + Sigma.T) / 2)
    assert flow.mean_at(later, 0.2) == pytest.approx(flow.mean_at(p.flow, 0.3), abs=1e-12)
    assert flow.cov_at(later, 0.2) == pytest.approx(flow.cov_at(p.flow, 0.3), abs=1e-12)


@pytest.mark.parametrize(("n", "d"), [(9, 4), (3, 5)])
def test_infinite_time_is_the_posterior(n: int, d: int) -> None:
    p = random_problem(2, n, d)
    assert flow.mean_at(p.flow, np.inf) == pytest.approx(np.linalg.solve(p.A, p.b), abs=1e-12)
    assert flow.cov_at(p.flow, np.inf) == pytest.approx(np.linalg.inv(p.A), abs=1e-12)


@given(seeds, st.sampled_from([0.0, 1e-9, 0.05, 3.0]), st.booleans())
def test_risks_are_their_definition_and_add_up(seed: int, t: float, is_general: bool) -> None:
    p = random_problem(seed)
    root = np.random.default_rng(seed + 1).standard_normal((4, 4))
    inputs = root @ root.T if is_general else np.eye(4)
    risks = flow.risks_at(p.flow, t, p.w_star, 0.09, inputs if is_general else None)
    mu, Sigma = flow.mean_at(p.flow, t), flow.cov_at(p.flow, t)
    residual, error = p.y - p.X @ mu, mu - p.w_star
    emp = (residual @ residual + np.trace(p.X.T @ p.X @ Sigma)) / (2 * len(p.y))
    gen = (error @ inputs @ error + np.trace(inputs @ Sigma) + 0.09) / 2
    assert risks.emp.total == pytest.approx(emp, rel=1e-11)
    assert risks.gen.total == pytest.approx(gen, rel=1e-11)
    for parts in risks:
        assert parts.total == pytest.approx(parts.floor + parts.linear + parts.quadratic)
    limit = flow.risks_at(p.flow, np.inf, p.w_star, 0.09, inputs if is_general else None)
    assert limit.emp.total == pytest.approx(risks.emp.floor, rel=1e-12)
    assert limit.gen.total == pytest.approx(risks.gen.floor, rel=1e-12)


@given(seeds)
def test_risks_fall_when_every_mode_weighs_in_positively(seed: int) -> None:
    p = random_problem(seed)
    X, mu0 = p.X, np.zeros(4)
    # Noise free, from the prior mean and wider than the posterior: all weights are positive.
    wide = eigen_flow(X, X @ p.w_star, 0.5, 1.7, mu0, 2.0)
    risks = flow.risks_at(wide, np.linspace(0.0, 4.0, 60), p.w_star, 0.0)
    for parts in risks:
        assert (np.diff(parts.total) <= 1e-14).all()


def test_the_trace_can_rise_while_the_uncertainty_at_an_input_falls() -> None:
    X = np.diag([1.0, 10.0])
    v = np.array([0.7, -0.07])
    p = eigen_flow(X, np.zeros(2), 1.0, 1e12, np.zeros(2), np.diag([1.0, 0.01]) - np.outer(v, v))
    times = np.linspace(0.0, 0.05, 30)
    assert (np.diff(flow.trace_at(p, times)) > 0).all()
    uncertainty = predictive.prediction_moments(p, times, np.array([1.0, 10.0]))[1]
    assert uncertainty[-1] < 0.8 * uncertainty[0]


def test_accuracies_and_uncertainty_equal_monte_carlo() -> None:
    p, t, eps, noise = random_problem(5), 0.2, 0.4, 0.25
    rng = np.random.default_rng(6)
    mu, Sigma = flow.mean_at(p.flow, t), flow.cov_at(p.flow, t)
    w = rng.multivariate_normal(mu, Sigma, 100_000)
    hits = (p.y - w @ p.X.T) ** 2 <= eps
    exact = predictive.accuracy(p.flow, t, p.X[:, :], p.y, eps)
    assert exact == predictive.train_accuracy(p.flow, t, eps)
    assert abs(hits.mean() - exact) < 4 * np.sqrt(0.25 / len(w))
    rate = hits.mean(axis=0)
    entropy = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate)).mean()
    assert predictive.train_threshold_eu(p.flow, t, eps) == pytest.approx(entropy, abs=5e-3)
    x = rng.standard_normal((3, 4))
    labels = x @ p.w_star + np.sqrt(noise) * rng.standard_normal((len(w), 3))
    hits = (labels - w @ x.T) ** 2 <= eps
    exact = predictive.population_accuracy(p.flow, t, x, p.w_star, noise, eps)
    assert abs(hits.mean() - exact) < 4 * np.sqrt(0.25 / len(w))


@pytest.fixture(scope="module")
def proportional() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {"X": rng.standard_normal((600, 360)), "w_star": rng.standard_normal(360)}


@pytest.mark.parametrize(
    ("s0", "eps", "error_of_paper", "error_of_two"),
    [(100.0, 30.0, 0.02, 0.04), (1.0, 0.3, 0.07, 0.04), (0.0, 0.3, 0.9, 0.04)],
)
def test_closures_against_the_exact_mean_uncertainty(
    proportional: dict[str, np.ndarray],
    s0: float,
    eps: float,
    error_of_paper: float,
    error_of_two: float,
) -> None:
    """The paper's closure is one only if the covariance carries the risk; two parts always do."""
    X, w_star = proportional["X"], proportional["w_star"]
    sigma2 = 600 * 1e-8
    p = eigen_flow(X, X @ w_star, sigma2, 1.0, np.zeros(360), s0)
    t = np.geomspace(1.0, 400.0, 25) * sigma2 / (2 * 600)
    exact = predictive.train_threshold_eu(p, t, eps) / np.log(2)
    mean, variance = predictive.prediction_moments(p, t, X)
    m2, v = ((X @ w_star - mean) ** 2).mean(axis=-1), variance.mean(axis=-1)
    paper = eu_closure((m2 + v) / 2, eps) / np.log(2)
    two = eu_closure2(m2, v, eps) / np.log(2)
    assert np.abs(two - exact).max() < error_of_two
    assert np.abs(paper - exact).max() == pytest.approx(error_of_paper, rel=0.3)


def test_isotropic_starts_need_no_matrix() -> None:
    p = random_problem(8)
    as_number = eigen_flow(p.X, p.y, 0.5, 1.7, p.mu0, 1.3)
    as_matrix = eigen_flow(p.X, p.y, 0.5, 1.7, p.mu0, 1.3 * np.eye(4))
    times = [0.0, 0.1, np.inf]
    assert as_number.initial_covariance is None
    assert flow.cov_at(as_number, times) == pytest.approx(flow.cov_at(as_matrix, times))
    for t in (0.1, times):
        a = predictive.prediction_moments(as_number, t, p.X)
        b = predictive.prediction_moments(as_matrix, t, p.X)
        assert a[1] == pytest.approx(b[1], rel=1e-12)


def test_a_flat_prior_is_the_limit_of_wide_ones() -> None:
    p = random_problem(9)
    flat = eigen_flow(p.X, p.y, 0.5, np.inf, p.mu0, p.Sigma0)
    wide = eigen_flow(p.X, p.y, 0.5, 1e14, p.mu0, p.Sigma0)
    assert flow.mean_at(flat, 0.3) == pytest.approx(flow.mean_at(wide, 0.3), abs=1e-11)
    assert flow.risks_at(flat, 0.3, p.w_star, 0.0).emp.linear == 0.0


@pytest.mark.parametrize("tau2", [1.0, 1e8, 1e18])
@pytest.mark.parametrize("conditions", [[1.0, 1.0, 1.0], [1.0, 1e-3, 1e-6]])
def test_a_wide_prior_costs_no_digits(tau2: float, conditions: list[float]) -> None:
    """Three data points for five weights, so that two directions have no data at all."""
    rng = np.random.default_rng(4)
    left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for d in (3, 5))
    X = (left * conditions) @ right[:, :3].T
    w_star = rng.standard_normal(5)
    y = X @ w_star
    sigma2 = 1e-5
    made = eigen_flow(X, y, sigma2, tau2, np.zeros(5), 1.0)
    values = np.array(conditions)
    shrunk = values**2 / (values**2 + sigma2 / tau2) * (right[:, :3].T @ w_star)
    assert flow.mean_at(made, np.inf) == pytest.approx(right[:, :3] @ shrunk, abs=1e-8)
    start = flow.risks_at(made, 0.0, w_star, 0.0)
    assert start.gen.total == pytest.approx(0.5 * (w_star @ w_star + 5), rel=1e-12)
    assert start.emp.total == pytest.approx((y @ y + (X**2).sum()) / 6, rel=1e-12)
    general = flow.risks_at(made, 0.0, w_star, 0.0, np.eye(5))
    assert general.gen.total == pytest.approx(start.gen.total, rel=1e-12)
