r"""The threshold model: a prediction counts as right when its squared residual is at most eps.

For a Gaussian residual $\mathcal{N}(m, v)$ success is Bernoulli with probability
$p = P(|m + \sqrt v\, z| \le \sqrt\epsilon)$, and given the weights it is certain, so its entropy
$h_2(p)$ is all epistemic. Entropies are in nats.
"""

import numpy as np
from scipy.special import erf, erfc, erfinv

from epigrok.errors import UserError
from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    real,
    unwrapped,
)
from epigrok.theory.quadrature import gauss_legendre, in_blocks

PEAK_LEVEL = 1.0 / (4.0 * float(erfinv(0.5)) ** 2)
"""Risk over eps at which the closure's uncertainty peaks: 1.0990546691588662."""
GROK_LEVEL = 0.125
"""Risk over eps at which the paper calls a model grokked."""
GROK_ACCURACY = float(erf(np.sqrt(2.0)))
"""Accuracy at `GROK_LEVEL`: 0.9545, which the paper rounds to 95 %."""
GROK_LEVEL_EXACT_95 = 1.0 / (4.0 * float(erfinv(0.95)) ** 2)
"""Risk over eps at which the accuracy is exactly 95 %: 0.1301588858135028."""

_NARROW = 0.5  # sqrt(eps/v) below which the interval is integrated instead of differenced
_INTERVAL_NODES = 24
_PANELS, _PANEL_NODES = 12, 16  # a panel spans at most 1.5 sqrt(v) and one sqrt(m2)


def interval_prob(
    mean: RealLike, variance: RealLike, eps: RealLike
) -> tuple[FloatOrArray, FloatOrArray]:
    r"""Probability that $\mathcal{N}(m, v)$ lies within $\pm\sqrt\epsilon$, and its complement.

    Both keep their relative accuracy however small they are, which neither `1 - p` nor a
    difference of normal distribution functions does. Zero variance gives the indicator.
    """
    m, v, e2 = broadcast(
        mean=np.abs(real("mean", mean)),
        variance=nonnegative("variance", variance),
        eps=positive("eps", eps),
    )
    inside, outside = _interval(m, v, np.sqrt(e2))
    return unwrapped(inside), unwrapped(outside)


def binary_entropy(p: RealLike, complement: RealLike | None = None) -> FloatOrArray:
    """$h_2(p) = -p log p - (1-p) log(1-p)$ in nats, at most log 2.

    Args:
        p: Probability.
        complement: `1 - p`, when it is known more accurately than by subtraction.
    """
    p = _probability("p", p)
    rest = 1.0 - p if complement is None else _probability("complement", complement)
    p, rest = broadcast(p=p, complement=rest)
    return unwrapped(_entropy(np.minimum(p, rest)))


def accuracy_closure(risk: RealLike, eps: RealLike) -> FloatOrArray:
    r"""The paper's closure $\mathrm{erf}\sqrt{\epsilon / (4L)}$ for the accuracy at risk L.

    Exact for a centred Gaussian residual of variance $2L$. It describes real accuracy only when
    `risk` is the total risk; with excess risk it always ends at 1.
    """
    return unwrapped(np.asarray(erf(_closure_argument(risk, eps))))


def eu_closure(risk: RealLike, eps: RealLike) -> FloatOrArray:
    r"""The paper's closure $h_2(\mathrm{erf}\sqrt{\epsilon / (4L)})$ for the threshold uncertainty.

    An epistemic uncertainty only where the covariance carries the risk; see `eu_closure2`.
    """
    x = _closure_argument(risk, eps)
    return unwrapped(_entropy(np.minimum(erf(x), erfc(x))))


def eu_closure2(mean_square: RealLike, variance: RealLike, eps: RealLike) -> FloatOrArray:
    r"""Two-component closure $\mathbb{E}\, h_2(p(\sqrt{m_2}\, z, v))$, $z \sim \mathcal{N}(0,1)$.

    It keeps the mean gap, which differs between data points but is certain at each of them, apart
    from the variance, which is what the posterior does not know. Generalisation side:
    $m_2 = |\mu_t - w_\star|^2 + \sigma_\varepsilon^2$, $v = \mathrm{Tr}\,\Sigma_t$; training side:
    $m_2 = |y - X\mu_t|^2 / n$, $v = \mathrm{Tr}(\hat\Sigma \Sigma_t)$. Equal to `eu_closure` when
    $m_2 = 0$.
    """
    m2, v, e2 = broadcast(
        mean_square=nonnegative("mean_square", mean_square),
        variance=nonnegative("variance", variance),
        eps=positive("eps", eps),
    )
    edge = np.sqrt(e2)
    uncertainty = np.zeros(m2.shape)
    centred = (m2 == 0) & (v > 0)
    uncertainty[centred] = _entropy_at(np.zeros(centred.sum()), v[centred], edge[centred])
    mixed = (m2 > 0) & (v > 0)
    uncertainty[mixed] = in_blocks(_gaussian_mean_entropy, m2[mixed], v[mixed], edge[mixed])
    return unwrapped(uncertainty)


def gaussian_eu(variance: RealLike, sigma_eps2: RealLike) -> FloatOrArray:
    r"""Mutual information $\frac12 \log(1 + v/\sigma_\varepsilon^2)$ of label and weights.

    `variance` is $x^\top \Sigma_t x$, what the weights contribute to the prediction at one input.
    """
    v, noise = broadcast(
        variance=nonnegative("variance", variance), sigma_eps2=positive("sigma_eps2", sigma_eps2)
    )
    return unwrapped(0.5 * np.log1p(v / noise))


def trace_eu(trace: RealLike, sigma_eps2: RealLike) -> FloatOrArray:
    r"""Closure of the averaged `gaussian_eu`: $x^\top\Sigma x$ replaced by its mean, the trace.

    Over-estimates, by about $\frac12 \mathrm{Tr}(\Sigma^2) / (\sigma_\varepsilon^2 +
    \mathrm{Tr}\,\Sigma)^2$.
    """
    return gaussian_eu(nonnegative("trace", trace), sigma_eps2)


def _probability(name: str, value: RealLike) -> Array:
    array = nonnegative(name, value)
    if (array > 1).any():
        raise UserError(f"{name} must be at most 1, not {array[array > 1].flat[0]}")
    return array


def _closure_argument(risk: RealLike, eps: RealLike) -> Array:
    L, e2 = broadcast(risk=nonnegative("risk", risk, allow_inf=True), eps=positive("eps", eps))
    argument = np.full(L.shape, np.inf)
    # Square roots first: eps / L itself could overflow.
    np.divide(np.sqrt(e2), 2.0 * np.sqrt(L), out=argument, where=L > 0)
    return argument


def _entropy(smaller: Array) -> Array:
    """Entropy from the smaller of the two probabilities; log1p keeps the other one's logarithm."""
    safe = np.where(smaller > 0, smaller, 1.0)
    entropy: Array = np.where(
        smaller > 0, -safe * np.log(safe) - (1.0 - safe) * np.log1p(-np.minimum(safe, 0.5)), 0.0
    )
    return entropy


def _interval(m: Array, v: Array, edge: Array) -> tuple[Array, Array]:
    """Probability inside and outside [-edge, edge], for m >= 0."""
    spread = np.sqrt(2.0 * np.where(v > 0, v, 1.0))
    near, far = (edge - m) / spread, (edge + m) / spread
    # Same-sign differences cancel: erf inside the interval, erfc beyond it.
    inside = np.asarray(np.where(near >= 0, erf(near) + erf(far), erfc(-near) - erfc(far)) / 2.0)
    narrow = (near < 0) & (edge < _NARROW * spread / np.sqrt(2.0)) & (v > 0)
    if narrow.any():
        nodes, weights = gauss_legendre(_INTERVAL_NODES)
        x = (m[narrow, None] + edge[narrow, None] * nodes) / spread[narrow, None]
        width = edge[narrow] / spread[narrow]
        inside[narrow] = width / np.sqrt(np.pi) * (weights * np.exp(-(x**2))).sum(axis=-1)
    outside = (erfc(near) + erfc(far)) / 2.0
    is_inside = (m <= edge).astype(np.float64)
    return np.where(v > 0, inside, is_inside), np.where(v > 0, outside, 1.0 - is_inside)


def _entropy_at(m: Array, v: Array, edge: Array) -> Array:
    return _entropy(np.minimum(*_interval(m, v, edge)))


def _gaussian_mean_entropy(m2: Array, v: Array, edge: Array) -> Array:
    """Mean of the entropy over m ~ N(0, m2): panels over the part of m >= 0 that contributes."""
    total = m2 + v
    # The entropy lives within 9 sqrt(v) of the edge, the weight within 12 sqrt(m2) of zero. Where
    # these do not meet, all there is comes from the saddle of their product.
    low, high = edge - 9.0 * np.sqrt(v), np.minimum(edge + 9.0 * np.sqrt(v), 12.0 * np.sqrt(m2))
    saddle, width = edge * m2 / total, np.sqrt(m2 / total * v)
    is_remote = edge**2 > 64.0 * total
    low = np.maximum(np.where(is_remote, saddle - 9.0 * width, low), 0.0)
    high = np.where(is_remote, saddle + 9.0 * width, high)
    nodes, weights = gauss_legendre(_PANEL_NODES)
    unit = ((np.arange(_PANELS)[:, None] + 0.5 * (nodes + 1.0)) / _PANELS).reshape(-1)
    unit_weights = np.tile(weights / (2.0 * _PANELS), _PANELS)
    m = low[:, None] + (high - low)[:, None] * unit
    ones = np.ones(unit.size)
    entropy = _entropy_at(m, v[:, None] * ones, edge[:, None] * ones)
    density = np.exp(-0.5 * m**2 / m2[:, None]) * np.sqrt(2.0 / (np.pi * m2))[:, None]
    mean: Array = (high - low) * (unit_weights * density * entropy).sum(axis=-1)
    return mean
