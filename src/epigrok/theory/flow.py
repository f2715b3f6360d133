r"""Gaussian variational inference in Bayesian linear regression, exactly, at any time.

The Bures-Wasserstein gradient flow of $q_t = \mathcal{N}(\mu_t, \Sigma_t)$ is

$$ \dot\mu = b - A\mu, \quad \dot\Sigma = 2I - A\Sigma - \Sigma A, \qquad
   A = X^\top X/\sigma^2 + I/\tau^2, \quad b = X^\top y/\sigma^2, $$

and in the eigenbasis $U$ of $X^\top X/n$ each mode moves alone. `eigen_flow` does the one cubic
step, by the singular values of $X$ because forming $X^\top X$ would square its condition; after it
scalars cost $O(d)$ per time, vectors and matrices $O(d^2)$. Shape letters: T times, n data points,
d weights. A scalar time drops the T axis; time may be infinite, which gives the posterior.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from epigrok.errors import UserError
from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    nonnegative,
    positive,
    real,
    scalar,
    unwrapped,
)
from epigrok.theory.matrices import decomposed, require_covariance


@dataclass(frozen=True, kw_only=True)
class EigenFlow:
    """The flow in the eigenbasis of the sample covariance; vectors there are U^T times them."""

    X: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]
    sigma2: float
    tau2: float
    nu: Float64[np.ndarray, " d"]
    """Eigenvalues of X^T X / n, ascending."""
    U: Float64[np.ndarray, "d d"]
    """Eigenvectors, in columns."""
    a: Float64[np.ndarray, " d"]
    """Eigenvalues n nu / sigma2 + 1/tau2 of A: the decay rates of the mean."""
    targets: Float64[np.ndarray, " d"]
    """y along the left singular vectors of X; zero where there is none."""
    targets_outside: float
    """Squared norm of y outside their span."""
    mean_limit: Float64[np.ndarray, " d"]
    """Posterior mean, in the eigenbasis."""
    mean_gap: Float64[np.ndarray, " d"]
    """Initial mean minus posterior mean, in the eigenbasis."""
    initial_variances: Float64[np.ndarray, " d"]
    """Diagonal of the initial covariance, in the eigenbasis."""
    initial_covariance: Float64[np.ndarray, "d d"] | None
    """All of it; None for an isotropic start, which is diagonal in every basis."""

    @property
    def mu_inf(self) -> Float64[np.ndarray, " d"]:
        """Posterior mean, in the original basis."""
        return np.asarray(self.U @ self.mean_limit)


class RiskParts(NamedTuple):
    """A risk and what it is made of: `total = floor + linear + quadratic`.

    The parts are large and cancel where the data say little; `total` is computed on its own.
    """

    total: FloatOrArray
    floor: float
    """Limit at infinite time."""
    linear: FloatOrArray
    """Decays like the mean; absent only if the posterior mean is exactly right."""
    quadratic: FloatOrArray
    """Decays twice as fast; may be negative if the start is narrower than the posterior."""


class Risks(NamedTuple):
    """Expected half squared error under q_t, on the training data and on the population."""

    emp: RiskParts
    gen: RiskParts


def eigen_flow(
    X: RealLike, y: RealLike, sigma2: RealLike, tau2: RealLike, mu0: RealLike, Sigma0: RealLike
) -> EigenFlow:
    """Diagonalise the flow of a data set.

    Args:
        X: Inputs, n by d.
        y: Targets.
        sigma2: Variance of the likelihood.
        tau2: Variance of the prior; infinite for a flat one, if the data determine the weights.
        mu0: Initial mean.
        Sigma0: Initial covariance: d by d, or a number for a multiple of the identity.
    """
    X, y, mu0, Sigma0 = real("X", X), real("y", y), real("mu0", mu0), real("Sigma0", Sigma0)
    sigma2 = scalar(positive("sigma2", sigma2), "sigma2")
    tau2 = scalar(positive("tau2", tau2, allow_inf=True), "tau2")
    _check_shapes(X, y, mu0, Sigma0)
    n, d = X.shape
    singular, U, targets, outside = decomposed(X, y)
    if tau2 == np.inf and singular[0] <= max(n, d) * np.finfo(np.float64).eps * singular[-1]:
        raise UserError("the posterior is improper: with tau2 = inf, X must have full column rank")
    a = singular**2 / sigma2 + 1.0 / tau2
    mean_limit = singular * targets / (singular**2 + sigma2 / tau2)
    variances, covariance = np.full(d, float(Sigma0.flat[0])), None
    if Sigma0.ndim:
        require_covariance(Sigma0)
        covariance = U.T @ Sigma0 @ U
        variances = np.diagonal(covariance).copy()
    return EigenFlow(
        X=X,
        y=y,
        sigma2=sigma2,
        tau2=tau2,
        nu=singular**2 / n,
        U=U,
        a=a,
        targets=targets,
        targets_outside=outside,
        mean_limit=mean_limit,
        mean_gap=U.T @ mu0 - mean_limit,
        initial_variances=variances,
        initial_covariance=covariance,
    )


def mean_at(flow: EigenFlow, t: RealLike) -> Float64[np.ndarray, "*T d"]:
    r"""Mean $\mu_t = \mu_\infty + e^{-At}(\mu_0 - \mu_\infty)$, shape (T, d)."""
    return np.asarray(mode_means(flow, t) @ flow.U.T)


def cov_at(flow: EigenFlow, t: RealLike) -> Float64[np.ndarray, "*T d d"]:
    r"""Covariance $\Sigma_t = e^{-At}\Sigma_0 e^{-At} + A^{-1}(I - e^{-2At})$, shape (T, d, d)."""
    return np.asarray(flow.U @ mode_covariance(flow, t) @ flow.U.T)


def trace_at(flow: EigenFlow, t: RealLike) -> FloatOrArray:
    r"""$\mathrm{Tr}\,\Sigma_t$."""
    return unwrapped(mode_variances(flow, t).sum(axis=-1))


def trace_rate_at(flow: EigenFlow, t: RealLike) -> FloatOrArray:
    r"""$\frac{d}{dt}\mathrm{Tr}\,\Sigma_t = -2\sum_i a_i \Delta s_i e^{-2a_it}$.

    $\Delta s_i = s_i - 1/a_i$ is the initial variance of mode i above its limit. Its sign fixes
    the direction of the trace if it is the same for all modes, but not of $x^\top\Sigma_t x$ at
    every input.
    """
    decay = np.exp(-2.0 * _rates_times(flow, t))
    return unwrapped(2.0 * (decay * (1.0 - flow.a * flow.initial_variances)).sum(axis=-1))


def risks_at(
    flow: EigenFlow,
    t: RealLike,
    w_star: RealLike,
    sigma_eps2: RealLike,
    Sigma_x: RealLike | None = None,
) -> Risks:
    r"""Expected risks under $q_t$, with their decomposition.

    $$ L_{emp} = \frac{1}{2n}\big(|y - X\mu_t|^2 + \mathrm{Tr}(X^\top X \Sigma_t)\big), \qquad
       L_{gen} = \frac12\big(|\mu_t - w_\star|^2_{\Sigma_x} + \mathrm{Tr}(\Sigma_x\Sigma_t)
       + \sigma_\varepsilon^2\big). $$

    Args:
        flow: From `eigen_flow`.
        t: Times.
        w_star: True weights.
        sigma_eps2: Variance of the label noise in the population.
        Sigma_x: Input covariance of the population; the identity if not given.
    """
    noise = scalar(nonnegative("sigma_eps2", sigma_eps2), "sigma_eps2")
    w_star = real("w_star", w_star)
    if w_star.shape != flow.a.shape:
        raise UserError(f"w_star has shape {w_star.shape}, the flow has {flow.a.size} weights")
    w_modes = flow.U.T @ w_star
    bias = flow.mean_limit - w_modes
    decay = np.exp(-_rates_times(flow, t))
    means, variances = mode_means(flow, t), mode_variances(flow, t)
    errors = means - w_modes
    if Sigma_x is None:
        gen = _diagonal_parts(flow, decay, np.ones_like(flow.nu), bias, bias @ bias + noise)
        gen_total = 0.5 * ((errors**2 + variances).sum(axis=-1) + noise)
    else:
        inputs = real("Sigma_x", Sigma_x)
        if inputs.shape != flow.U.shape:
            raise UserError(f"Sigma_x has shape {inputs.shape}, not {flow.U.shape}")
        require_covariance(inputs, "Sigma_x")
        inputs = flow.U.T @ inputs @ flow.U
        gen = _general_parts(flow, decay, inputs, bias, noise)
        spread = variances @ np.diagonal(inputs)
        if flow.initial_covariance is not None:
            between = flow.initial_covariance - np.diag(flow.initial_variances)
            spread = spread + ((decay @ (inputs * between)) * decay).sum(axis=-1)
        gen_total = 0.5 * (((errors @ inputs) * errors).sum(axis=-1) + spread + noise)
    # X^T r = (sigma2/tau2) mu at the posterior mean: its residuals are not zero, but shrunk.
    n = len(flow.y)
    pull = -flow.sigma2 / (n * flow.tau2) * flow.mean_limit
    singular = np.sqrt(n * flow.nu)
    floor_square = _square(flow.targets - singular * flow.mean_limit) + flow.targets_outside
    emp = _diagonal_parts(flow, decay, flow.nu, pull, floor_square / n)
    squares = _square(flow.targets - singular * means) + flow.targets_outside
    return Risks(_risk(0.5 * (squares / n + variances @ flow.nu), emp), _risk(gen_total, gen))


def mode_means(flow: EigenFlow, t: RealLike) -> Float64[np.ndarray, "*T d"]:
    """Mean in the eigenbasis, shape (T, d)."""
    return np.asarray(flow.mean_limit + np.exp(-_rates_times(flow, t)) * flow.mean_gap)


def mode_variances(flow: EigenFlow, t: RealLike) -> Float64[np.ndarray, "*T d"]:
    """Diagonal of the covariance in the eigenbasis, shape (T, d)."""
    exponent = -2.0 * _rates_times(flow, t)
    # Not limit + gap * decay: these terms are positive, and do not cancel at small times.
    return np.asarray(np.exp(exponent) * flow.initial_variances - np.expm1(exponent) / flow.a)


def mode_covariance(flow: EigenFlow, t: RealLike) -> Float64[np.ndarray, "*T d d"]:
    """Covariance in the eigenbasis, shape (T, d, d)."""
    variances = mode_variances(flow, t)
    indices = np.arange(flow.a.size)
    if flow.initial_covariance is None:
        covariance = np.zeros((*variances.shape, flow.a.size))
    else:
        decay = np.exp(-_rates_times(flow, t))
        covariance = decay[..., :, None] * flow.initial_covariance * decay[..., None, :]
    covariance[..., indices, indices] = variances
    return covariance


def _rates_times(flow: EigenFlow, t: RealLike) -> Array:
    return np.asarray(nonnegative("t", t, allow_inf=True)[..., None] * flow.a)


def _square(vectors: Array) -> Array:
    return np.asarray((vectors**2).sum(axis=-1))


def _diagonal_parts(
    flow: EigenFlow, decay: Array, weights: Array, pull: Array, floor_square: Array | float
) -> tuple[float, Array, Array]:
    """Parts of a risk that weighs mode i by `weights[i]`; the linear one is `pull` times the gap.

    `floor_square` is the part of twice the floor that is not posterior variance.
    """
    gap = flow.mean_gap**2 + flow.initial_variances - 1.0 / flow.a
    quadratic = 0.5 * (decay**2 * (weights * gap)).sum(axis=-1)
    linear = (decay * (pull * flow.mean_gap)).sum(axis=-1)
    floor = 0.5 * (float(floor_square) + float((weights / flow.a).sum()))
    return floor, linear, quadratic


def _general_parts(
    flow: EigenFlow, decay: Array, inputs: Array, bias: Array, noise: float
) -> tuple[float, Array, Array]:
    """Parts of the generalisation risk for inputs of any covariance, given in the eigenbasis."""
    gap = -np.diag(1.0 / flow.a) + np.outer(flow.mean_gap, flow.mean_gap)
    start = flow.initial_covariance
    gap += np.diag(flow.initial_variances) if start is None else start
    quadratic = 0.5 * ((decay @ (inputs * gap)) * decay).sum(axis=-1)
    linear = (decay * flow.mean_gap) @ (inputs @ bias)
    floor = 0.5 * float(bias @ inputs @ bias + (np.diagonal(inputs) / flow.a).sum() + noise)
    return floor, linear, quadratic


def _risk(total: Array, parts: tuple[float, Array, Array]) -> RiskParts:
    floor, linear, quadratic = parts
    return RiskParts(
        unwrapped(np.asarray(total)),
        floor,
        unwrapped(np.asarray(linear)),
        unwrapped(np.asarray(quadratic)),
    )


def _check_shapes(X: Array, y: Array, mu0: Array, Sigma0: Array) -> None:
    if X.ndim != 2 or 0 in X.shape:
        raise UserError(f"X must be an n by d matrix, not of shape {X.shape}")
    n, d = X.shape
    for name, array, shape in (("y", y, (n,)), ("mu0", mu0, (d,))):
        if array.shape != shape:
            raise UserError(f"{name} must have shape {shape} to fit X, not {array.shape}")
    if Sigma0.shape not in ((), (d, d)):
        raise UserError(f"Sigma0 must be a number or {d} by {d}, not of shape {Sigma0.shape}")
    if not Sigma0.ndim:
        nonnegative("Sigma0", Sigma0)
