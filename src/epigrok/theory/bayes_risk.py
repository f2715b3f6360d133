r"""The well-specified model without the paper's matched assumption, averaged over its randomness.

Weights $w_\star \sim \mathcal{N}(0, \tau^2 I)$, label noise of the likelihood's variance,
$\mu_0 = 0$ and $\Sigma_0 = s_0 I$. With $a = \beta(\nu+\gamma)$ and $x = \nu + \gamma$ the mean
risks above their limits are, in units of $d\tau^2$ and with $r = s_0/\tau^2$,

$$ \text{gen} = \tfrac12 \mathbb{E}\big[(1 + r - 2\gamma/x)\, e^{-sx}\big], \qquad
   \text{emp} = \tfrac12 \mathbb{E}\big[\nu(1 + r - 2\gamma/x)\, e^{-sx}\big]
   + \gamma\, \mathbb{E}\big[(\nu/x)\, e^{-sx/2}\big]. $$

The last, linear term decays at half the rate, so it ends up above the rest; the paper's matched
regime drops it. On the generalisation side it averages to zero.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import exprel

from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    side,
    unwrapped,
)
from epigrok.theory.marchenko_pastur import mp_atom, mp_resolvent, tilted_expectation
from epigrok.theory.spectral_rule import lower_edge


class BayesExcessRisk(NamedTuple):
    r"""Mean excess risk in units of $d\tau^2$, by order in the decaying mode."""

    quadratic: FloatOrArray
    linear: FloatOrArray

    @property
    def total(self) -> FloatOrArray:
        """Both parts together."""
        return self.quadratic + self.linear


class BayesRiskFloor(NamedTuple):
    """Limits of the mean risks, split as the units they come in."""

    gen_minus_noise_over_d_tau2: FloatOrArray
    r"""$(L_{gen,\infty} - \sigma^2/2)/(d\tau^2) = \gamma\,\mathbb{E}[1/(\nu+\gamma)]$."""
    emp_over_sigma2: float
    r"""$L_{emp,\infty}/\sigma^2$: one half, whatever the parameters."""


def bayes_excess_risk(
    s: RealLike, which: str, lam: RealLike, gamma: RealLike, s0_over_tau2: RealLike
) -> BayesExcessRisk:
    r"""Mean excess risk at time $s = 2nt/\sigma^2$; it may be negative when $s_0 < \tau^2$."""
    which = side(which)
    s, lam, gamma, r = broadcast(
        s=nonnegative("s", s),
        lam=positive("lam", lam),
        gamma=positive("gamma", gamma),
        s0_over_tau2=nonnegative("s0_over_tau2", s0_over_tau2),
    )
    g, ratio = gamma[..., None], r[..., None]

    def weight(nu: Array) -> Array:
        gap = 0.5 * (1.0 + ratio - 2.0 * g / (nu + g))
        return gap if which == "gen" else nu * gap

    continuous = np.exp(-(lower_edge(lam) + gamma) * s) * tilted_expectation(weight, lam, s)
    if which == "gen":
        atom = np.asarray(mp_atom(lam)) * 0.5 * (r - 1.0) * np.exp(-gamma * s)
        return BayesExcessRisk(unwrapped(continuous + atom), unwrapped(np.zeros(s.shape)))
    slow = tilted_expectation(lambda nu: nu / (nu + g), lam, 0.5 * s)
    linear = gamma * np.exp(-0.5 * (lower_edge(lam) + gamma) * s) * slow
    return BayesExcessRisk(unwrapped(np.asarray(continuous)), unwrapped(np.asarray(linear)))


def bayes_risk_floor(lam: RealLike, gamma: RealLike) -> BayesRiskFloor:
    r"""Limits of the mean risks: $L_{gen,\infty} = d\,\mathbb{E}[1/a] + \sigma^2/2$."""
    floor = np.asarray(positive("gamma", gamma) * mp_resolvent(lam, gamma))
    return BayesRiskFloor(unwrapped(floor), 0.5)


def isotropic_trace(s: RealLike, lam: RealLike, gamma: RealLike, beta_s0: RealLike) -> FloatOrArray:
    r"""$\frac{\beta}{d} \mathrm{Tr}\,\Sigma_t$ from $\Sigma_0 = s_0 I$, for many weights.

    $$ \mathbb{E}\big[\beta s_0\, e^{-sx} + (1 - e^{-sx})/x\big], \qquad x = \nu + \gamma $$
    """
    s, lam, gamma, initial = broadcast(
        s=nonnegative("s", s),
        lam=positive("lam", lam),
        gamma=nonnegative("gamma", gamma),
        beta_s0=nonnegative("beta_s0", beta_s0),
    )

    def mode(nu: Array) -> Array:
        x = -s[..., None] * (nu + gamma[..., None])
        # exprel is (1 - e^x)/(-x): no cancellation early on, no 0/0 without data and prior.
        width: Array = initial[..., None] * np.exp(x) + s[..., None] * exprel(x)
        return width

    atom = np.asarray(mp_atom(lam)) * mode(np.zeros((*s.shape, 1)))[..., 0]
    return unwrapped(np.asarray(tilted_expectation(mode, lam, 0.0 * s) + atom))
