r"""Exact finite systems, drawn without building a matrix.

For a Gaussian design the eigenvectors are Haar distributed and independent of the spectrum, so true
weights and label noise are Gaussian in the eigenbasis as well: spectrum, weights and noise give the
exact law of both risk curves in $O(d)$ per time.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.optimize import brentq

from epigrok.theory.inputs import RealLike, nonnegative, positive, scalar, side
from epigrok.theory.linear_model import LinearModel
from epigrok.theory.marchenko_pastur import sample_spectrum

_LOG_STEP = 0.1
_TIMES_TO_SETTLE = 80.0
"""Decay times after which nothing of the start is left in double precision."""


@dataclass(frozen=True, kw_only=True)
class FiniteSystem:
    """One data set with its true weights, in the eigenbasis of the sample covariance."""

    model: LinearModel
    nu: Float64[np.ndarray, " d"]
    """Eigenvalues of X^T X / n."""
    w_star: Float64[np.ndarray, " d"]
    """True weights."""
    noise: Float64[np.ndarray, " d"]
    """Label noise along the left singular vectors; zero where `nu` is."""
    noise_outside: float
    """Squared norm of the label noise outside the span of the inputs."""


@dataclass(frozen=True, kw_only=True)
class ResidualMoments:
    """Second moment of the residual, split into what q_t knows and what it does not."""

    mean_square: Float64[np.ndarray, "*T"]
    """Of the residual of the mean prediction, averaged over data points."""
    variance: Float64[np.ndarray, "*T"]
    """Of the prediction under q_t, averaged over data points."""

    @property
    def risk(self) -> Float64[np.ndarray, "*T"]:
        """Expected half squared error."""
        return np.asarray(0.5 * (self.mean_square + self.variance))


def sample_system(model: LinearModel, lam: float, rng: np.random.Generator) -> FiniteSystem:
    """Draw a data set of aspect ratio `lam`."""
    n, d = model.n, model.num_weights(lam)
    nu = sample_spectrum(n, d, rng)
    rank = min(n, d)
    noise = np.zeros(d)
    noise[d - rank :] = rng.standard_normal(rank)
    outside = rng.chisquare(n - rank) if n > rank else 0.0
    return FiniteSystem(
        model=model,
        nu=nu,
        w_star=np.sqrt(model.tau2) * rng.standard_normal(d),
        noise=np.sqrt(model.sigma_eps2) * noise,
        noise_outside=model.sigma_eps2 * float(outside),
    )


def residual_moments(system: FiniteSystem, s: RealLike, which: str) -> ResidualMoments:
    r"""Moments at times $s = 2nt/\sigma^2$ on the training data or the population."""
    model, nu = system.model, system.nu
    x = nu + model.gamma
    half = -0.5 * nonnegative("s", s, allow_inf=True)[..., None] * x
    singular = np.sqrt(model.n * nu)
    limit = singular * (singular * system.w_star + system.noise) / (model.n * x)
    error = -np.expm1(half) * limit - system.w_star
    variances = np.exp(2.0 * half) * model.s0 - np.expm1(2.0 * half) / (model.beta * x)
    if side(which) == "gen":
        return ResidualMoments(
            mean_square=np.asarray((error**2).sum(axis=-1) + model.sigma_eps2),
            variance=np.asarray(variances.sum(axis=-1)),
        )
    squares = ((system.noise - singular * error) ** 2).sum(axis=-1) + system.noise_outside
    return ResidualMoments(
        mean_square=np.asarray(squares / model.n), variance=np.asarray(variances @ nu)
    )


def risk_crossing(system: FiniteSystem, risk: RealLike, which: str) -> float:
    """First time the total risk falls to `risk`; NaN if it starts below, infinity if it never does.

    Total, not excess: accuracy sees all of the risk, which may rise again after it has fallen.
    Excursions below the level shorter than a tenth of the time they happen at may be missed.
    """
    level = scalar(positive("risk", risk), "risk")

    def log_gap(log_s: float) -> float:
        return float(np.log(residual_moments(system, np.exp(log_s), which).risk / level))

    if residual_moments(system, 0.0, which).risk <= level:
        return np.nan
    rates = system.nu + system.model.gamma
    settled = _TIMES_TO_SETTLE / rates[rates > 0].min()
    log_s = np.arange(np.log(1e-3 / rates.max()), np.log(settled) + _LOG_STEP, _LOG_STEP)
    is_below = residual_moments(system, np.exp(log_s), which).risk <= level
    if not is_below.any():
        return np.inf
    high = float(log_s[is_below.argmax()])
    low = high - _LOG_STEP
    while log_gap(low) <= 0:
        low -= _LOG_STEP
    return float(np.exp(brentq(log_gap, low, high, xtol=1e-13, rtol=1e-14)))
