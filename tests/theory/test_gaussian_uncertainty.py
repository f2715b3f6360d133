"""Entropies of the Gaussian predictive and which way the population's uncertainty moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from epigrok.theory import flow, gaussian_uncertainty, predictive
from epigrok.theory.flow import EigenFlow, eigen_flow
from epigrok.theory.gaussian_uncertainty import covariance_order, population_eu
from epigrok.theory.threshold import trace_eu

seeds = st.integers(0, 10_000)
NOISE = 0.3


def ordered_flow(seed: int, ratios: list[float], d: int = 3) -> EigenFlow:
    """A start with the given eigenvalues relative to the posterior, in directions of its own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, d)) * [0.2, 1.0, 5.0]
    A = X.T @ X / 0.5 + np.eye(d) / 1.7
    values, vectors = np.linalg.eigh(A)
    inverse_root = vectors / np.sqrt(values) @ vectors.T
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    Sigma0 = inverse_root @ (basis * ratios) @ basis.T @ inverse_root
    return eigen_flow(X, rng.standard_normal(5), 0.5, 1.7, np.zeros(d), (Sigma0 + Sigma0.T) / 2)


def test_entropies_are_those_of_the_normal_distributions() -> None:
    v, noise = np.array([0.0, 0.4, 7.0]), 0.01
    total, aleatoric, epistemic = gaussian_uncertainty.gaussian_entropies(v, noise)
    assert total == pytest.approx(norm(scale=np.sqrt(v + noise)).entropy())
    assert aleatoric == pytest.approx(np.full(3, norm(scale=0.1).entropy()))
    assert total == pytest.approx(aleatoric + epistemic)
    assert aleatoric[0] < 0 == epistemic[0]


def test_entropies_of_the_prediction_equal_sampled_ones() -> None:
    made, t = ordered_flow(3, [0.2, 1.0, 4.0]), 0.3
    rng = np.random.default_rng(1)
    x = rng.standard_normal(3)
    entropies = gaussian_uncertainty.predictive_entropies(made, t, x, NOISE)
    mean, variance = predictive.prediction_moments(made, t, x)
    w = rng.multivariate_normal(flow.mean_at(made, t), flow.cov_at(made, t), 100_000)
    y = w @ x + np.sqrt(NOISE) * rng.standard_normal(len(w))
    surprise = -norm(mean, np.sqrt(variance + NOISE)).logpdf(y)
    given_weights = -norm(w @ x, np.sqrt(NOISE)).logpdf(y)
    for exact, sampled in (
        (entropies.total, surprise),
        (entropies.aleatoric, given_weights),
        (entropies.epistemic, surprise - given_weights),
    ):
        assert abs(sampled.mean() - exact) < 4 * sampled.std() / np.sqrt(len(w))
    assert entropies.epistemic == predictive.predictive_eu(made, t, x, NOISE)


@pytest.mark.parametrize("ratios", [[0.2, 1.0, 4.0], [0.0, 0.0, 0.0], [1e6, 1.0, 1e-6]])
def test_population_uncertainty_equals_sampled_inputs(ratios: list[float]) -> None:
    made, times = ordered_flow(4, ratios), [0.0, 0.1, np.inf]
    x = np.random.default_rng(2).standard_normal((200_000, 3))
    sampled = predictive.predictive_eu(made, times, x, NOISE)
    error = sampled.std(axis=-1) / np.sqrt(len(x))
    exact = population_eu(made, times, NOISE)
    assert (np.abs(sampled.mean(axis=-1) - exact) <= 4 * error).all()
    assert (exact <= np.asarray(trace_eu(flow.trace_at(made, times), NOISE)) + 1e-14).all()


def test_population_uncertainty_of_one_weight_has_a_known_value() -> None:
    """For one weight of variance v: the integral of log(1 + v x^2)/2 over a normal x."""
    made = eigen_flow([[1.0]], [0.0], 1.0, 1.0, [0.0], 2.0)
    x, weights = np.polynomial.hermite_e.hermegauss(180)
    exact = (weights * 0.5 * np.log1p(2.0 / NOISE * x**2)).sum() / weights.sum()
    assert population_eu(made, 0.0, NOISE) == pytest.approx(exact, rel=1e-3)


@given(seeds, st.lists(st.floats(0.0, 0.999), min_size=3, max_size=3))
def test_from_below_the_posterior_uncertainty_rises(seed: int, ratios: list[float]) -> None:
    made = ordered_flow(seed, ratios)
    assert covariance_order(made) == "below"
    assert_moves(made, +1)


@given(seeds, st.lists(st.floats(0.001, 6.0).map(lambda x: 1 + x), min_size=3, max_size=3))
def test_from_above_the_posterior_uncertainty_falls(seed: int, ratios: list[float]) -> None:
    made = ordered_flow(seed, ratios)
    assert covariance_order(made) == "above"
    assert_moves(made, -1)


@given(seeds)
def test_from_the_posterior_uncertainty_stays(seed: int) -> None:
    made = ordered_flow(seed, [1.0, 1.0, 1.0])
    assert covariance_order(made) == "equal"
    times = np.geomspace(1e-4, 10.0, 20)
    for curve in (flow.trace_at(made, times), population_eu(made, times, NOISE)):
        assert curve == pytest.approx(np.full(20, curve[0]), rel=1e-10)


def assert_moves(made: EigenFlow, sign: int) -> None:
    """The closure by its derivative, the exact average by its values, both the given way."""
    times = np.geomspace(1e-3 / made.a[-1], 4 / made.a[0], 25)
    assert (sign * flow.trace_rate_at(made, times) >= 0).all()
    assert (sign * np.diff(trace_eu(flow.trace_at(made, times), NOISE)) >= -1e-13).all()
    assert (sign * np.diff(population_eu(made, times, NOISE)) >= -1e-13).all()


def test_between_the_cases_uncertainty_may_turn() -> None:
    """Narrow along the fast direction, wide along the slow one: first up, then down."""
    made = eigen_flow(np.diag([0.1, 10.0]), np.zeros(2), 1.0, 10.0, np.zeros(2), np.diag([60, 0]))
    assert covariance_order(made) == "neither"
    assert covariance_order(eigen_flow(np.eye(2), np.zeros(2), 1, 1, np.zeros(2), 0.5)) == "equal"
    curve = population_eu(made, np.geomspace(1e-4, 50.0, 60), 1e-6)
    assert 0 < curve.argmax() < 59
