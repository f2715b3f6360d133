r"""The Gaussian predictive: its entropies at an input, and their average over the population.

With $y \mid x, w \sim \mathcal{N}(x^\top w, \sigma_\varepsilon^2)$ and $w \sim q_t$ the prediction
is $\mathcal{N}(x^\top\mu_t, \sigma_\varepsilon^2 + x^\top\Sigma_t x)$. Its entropy is the aleatoric
part $\frac12\log(2\pi e\,\sigma_\varepsilon^2)$ plus the mutual information of label and weights.

For inputs $x \sim \mathcal{N}(0, I)$ the average uncertainty moves one way only when the start is
on one side of the posterior, $\Sigma_0 \preceq \Sigma_\infty$ or $\Sigma_0 \succeq \Sigma_\infty$.
The paper shows it for the trace closure; it holds for the exact average too: its gradient
$W = \mathbb{E}[xx^\top/(\sigma_\varepsilon^2 + x^\top\Sigma x)]/2$ commutes with $\Sigma$, so

$$ \frac{d}{dt}\mathrm{EU} = \mathrm{Tr}\,W(2I - A\Sigma - \Sigma A)
   = 2\,\mathrm{Tr}\,W - 2\,\mathrm{Tr}\big(W^{1/2}\Sigma^{1/2} A\, \Sigma^{1/2} W^{1/2}\big), $$

and $\Sigma_t \preceq A^{-1}$, which the flow keeps, is $A \preceq \Sigma_t^{-1}$: the last trace is
at most $2\,\mathrm{Tr}\,W$. At a single input neither needs to hold.
"""

from typing import Literal, NamedTuple

import numpy as np

from epigrok.theory.flow import EigenFlow, mode_covariance, mode_variances
from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    scalar,
    unwrapped,
)
from epigrok.theory.predictive import prediction_moments
from epigrok.theory.threshold import gaussian_eu

Order = Literal["below", "above", "equal", "neither"]
"""Where the initial covariance stands against the posterior's, as quadratic forms."""

_ORDER_TOLERANCE = 1e-12
_LOG_STEP = 0.2  # of the trapezoidal rule: analytic in a strip of pi/2, error e^-49
_LATEST_LOG_TIME = 4.0  # e^(-e^4) is 1e-24


class GaussianEntropies(NamedTuple):
    """Differential entropies in nats: `total = aleatoric + epistemic`."""

    total: FloatOrArray
    """Of the prediction; negative for narrow ones, as differential entropies are."""
    aleatoric: FloatOrArray
    """Of the label given the weights."""
    epistemic: FloatOrArray
    """Mutual information of label and weights: not negative."""


def gaussian_entropies(variance: RealLike, sigma_eps2: RealLike) -> GaussianEntropies:
    r"""Entropies where the weights contribute `variance` $= x^\top\Sigma_t x$ to the prediction."""
    v, noise = broadcast(
        variance=nonnegative("variance", variance), sigma_eps2=positive("sigma_eps2", sigma_eps2)
    )
    aleatoric = 0.5 * (1.0 + np.log(2.0 * np.pi) + np.log(noise))
    total = 0.5 * (1.0 + np.log(2.0 * np.pi) + np.log(v + noise))
    return GaussianEntropies(unwrapped(total), unwrapped(aleatoric), gaussian_eu(v, noise))


def predictive_entropies(
    flow: EigenFlow, t: RealLike, x: RealLike, sigma_eps2: RealLike
) -> GaussianEntropies:
    """Entropies of the prediction at each input, shape (T, m)."""
    return gaussian_entropies(prediction_moments(flow, t, x)[1], sigma_eps2)


def population_eu(flow: EigenFlow, t: RealLike, sigma_eps2: RealLike) -> FloatOrArray:
    r"""Exact mean over $x \sim \mathcal{N}(0, I)$ of $\frac12\log(1+x^\top\Sigma_t x/\sigma^2)$.

    From $\log(1+X) = \int_0^\infty (1 - e^{-uX})\, e^{-u}\, du/u$ and
    $\mathbb{E}\, e^{-u x^\top\Sigma x} = \prod_i (1 + 2u\sigma_i)^{-1/2}$ over the eigenvalues.
    """
    noise = scalar(positive("sigma_eps2", sigma_eps2), "sigma_eps2")
    times = nonnegative("t", t, allow_inf=True)
    values = [_mean_eu(_eigenvalues(flow, float(time)) / noise) for time in times.reshape(-1)]
    return unwrapped(np.asarray(values).reshape(times.shape))


def covariance_order(flow: EigenFlow) -> Order:
    r"""Whether $\Sigma_0$ is below, above or equal to $\Sigma_\infty$, or none of these.

    Below, population uncertainty and trace rise at all times; above they fall; equal, they stay.
    """
    scale = np.sqrt(flow.a)
    if flow.initial_covariance is None:
        ratios = flow.a * flow.initial_variances
    else:
        ratios = np.linalg.eigvalsh(scale[:, None] * flow.initial_covariance * scale)
    is_below, is_above = (ratios <= 1 + _ORDER_TOLERANCE), (ratios >= 1 - _ORDER_TOLERANCE)
    if (is_below & is_above).all():
        return "equal"
    return "below" if is_below.all() else "above" if is_above.all() else "neither"


def _eigenvalues(flow: EigenFlow, t: float) -> Array:
    if flow.initial_covariance is None:
        return mode_variances(flow, t)
    # Rounding can leave a zero below zero.
    return np.maximum(np.linalg.eigvalsh(mode_covariance(flow, t)), 0.0)


def _mean_eu(variances: Array) -> float:
    total = float(variances.sum())
    if total == 0.0:
        return 0.0
    # In log u the integrand rises like u * total, is flat, and ends with e^-u.
    start = min(-np.log(total), 0.0) - 40.0
    u = np.exp(np.arange(start, _LATEST_LOG_TIME, _LOG_STEP))
    log_survival = -0.5 * np.log1p(2.0 * u[:, None] * variances).sum(axis=-1)
    return float(0.5 * _LOG_STEP * (-np.expm1(log_survival) * np.exp(-u)).sum())
