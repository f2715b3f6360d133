"""The closed ODEs follow from the Bures-Wasserstein expectations, and the flow solves those."""

import itertools

import numpy as np
import pytest
import sympy as sp

from epigrok.theory import flow
from epigrok.theory.flow import eigen_flow


def gaussian_mean(expression: sp.Expr, z: sp.Matrix) -> sp.Expr:
    """Expectation of a polynomial of degree two at most in independent standard normals."""
    polynomial = sp.Poly(sp.expand(expression), *z)
    assert polynomial.total_degree() <= 2
    moments = {0: 1, 1: 0, 2: 1}
    return sum(
        coefficient * sp.prod([moments[power] for power in powers])
        for powers, coefficient in polynomial.terms()
    )


def test_the_expectations_are_the_closed_odes() -> None:
    """Symbolically, for two weights and two data points, from log q and log p alone."""
    X, y = sp.Matrix(2, 2, sp.symbols("x:4")), sp.Matrix(sp.symbols("y:2"))
    w, mu, z = (sp.Matrix(sp.symbols(f"{name}:2")) for name in ("w", "m", "z"))
    sigma2, tau2 = sp.symbols("sigma2 tau2", positive=True)
    a, b, c = sp.symbols("a b c", positive=True)
    root = sp.Matrix([[a, 0], [b, c]])
    Sigma = root * root.T
    log_q = -((w - mu).T * Sigma.inv() * (w - mu))[0] / 2
    residual = y - X * w
    log_p = -(residual.T * residual)[0] / (2 * sigma2) - (w.T * w)[0] / (2 * tau2)
    gradient = sp.Matrix([sp.diff(log_q - log_p, weight) for weight in w])
    drawn = gradient.subs(dict(zip(w, mu + root * z)), simultaneous=True).applyfunc(sp.cancel)
    offset = root * z
    mean_velocity = -drawn.applyfunc(lambda entry: gaussian_mean(entry, z))
    pull = drawn * offset.T + offset * drawn.T
    cov_velocity = -pull.applyfunc(lambda entry: gaussian_mean(entry, z))
    A = X.T * X / sigma2 + sp.eye(2) / tau2
    closed_mean = X.T * y / sigma2 - A * mu
    closed_cov = 2 * sp.eye(2) - A * Sigma - Sigma * A
    assert (mean_velocity - closed_mean).applyfunc(sp.cancel) == sp.zeros(2, 1)
    assert (cov_velocity - closed_cov).applyfunc(sp.cancel) == sp.zeros(2, 2)


@pytest.mark.parametrize(("n", "d"), [(6, 3), (2, 3)])
@pytest.mark.parametrize("t", [0.05, 0.4])
def test_the_flow_moves_as_the_expectations_say(n: int, d: int, t: float) -> None:
    """Gauss-Hermite nodes take the expectations exactly; the velocity is the flow's own."""
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    start = rng.standard_normal((d, d))
    sigma2, tau2 = 0.7, 1.9
    made = eigen_flow(X, y, sigma2, tau2, rng.standard_normal(d), start @ start.T)
    mu, Sigma = flow.mean_at(made, t), flow.cov_at(made, t)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    z = np.array(list(itertools.product(nodes, repeat=d)))
    mass = np.prod(list(itertools.product(weights / weights.sum(), repeat=d)), axis=1)
    w = mu + z @ np.linalg.cholesky(Sigma).T

    def gradient(point: np.ndarray) -> np.ndarray:
        log_q = -np.linalg.solve(Sigma, point - mu)
        return log_q - (X.T @ (y - X @ point) / sigma2 - point / tau2)

    gradients = np.array([gradient(point) for point in w])
    cross = np.einsum("k,ki,kj->ij", mass, gradients, w - mu)
    h = 2e-4
    steps, factors = h * np.array([-2, -1, 1, 2]), np.array([1, -8, 8, -1]) / (12 * h)
    mean_velocity = np.tensordot(factors, flow.mean_at(made, t + steps), 1)
    cov_velocity = np.tensordot(factors, flow.cov_at(made, t + steps), 1)
    assert mean_velocity == pytest.approx(-mass @ gradients, abs=1e-7)
    assert cov_velocity == pytest.approx(-cross - cross.T, abs=1e-7)
