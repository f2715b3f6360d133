r"""How long generalisation trails training: exact times, bounds, and the formulas beside them.

Two events on each risk curve, in units of the tolerance: the threshold uncertainty peaks at
$L = 1.099\,\epsilon$, and the model has grokked at $L = \epsilon/8$. Everything depends on three
numbers, $\lambda = d/n$, $\gamma = \sigma^2/(n\tau^2)$ and $\epsilon/C_0$; times are
$s = 2nt/\sigma^2$.

For every level below $C_0$ the delay obeys, with $R = G/M$ at the training crossing,

$$ \frac{\log R}{1/R + \gamma} \;\le\; \Delta s \;\le\; \frac{\log R}{\nu_- + \gamma}
   \;\le\; \frac{\log(1/\nu_-)}{\nu_- + \gamma} = \text{the paper's formula}, $$

because $L_{gen} = R\,c$ when the training risk crosses $c$, and from there its logarithm falls at a
rate that starts at $1/R + \gamma$ and never drops below $\nu_- + \gamma$.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from epigrok.theory.asymptotics import crossing_edge_newton, crossing_lambert
from epigrok.theory.excess_risk import crossing_s, crossing_time
from epigrok.theory.inputs import (
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    unwrapped,
)
from epigrok.theory.marchenko_pastur import lower_edge, mp_log_G, mp_log_M
from epigrok.theory.threshold import GROK_LEVEL, PEAK_LEVEL
from epigrok.theory.validity import validity_report

__all__ = [
    "Crossings",
    "DelayBounds",
    "crossing_s",
    "crossing_time",
    "crossings",
    "crossings_edge_newton",
    "crossings_lambert",
    "delay_bounds",
    "delay_leading",
    "validity_report",
]


class Crossings(NamedTuple):
    """Times of the two events on the two curves; NaN: no such event, infinity: never."""

    s_emp_peak: FloatOrArray
    s_gen_peak: FloatOrArray
    s_emp_grok: FloatOrArray
    s_gen_grok: FloatOrArray

    @property
    def delta_s_peak(self) -> FloatOrArray:
        """Delay between the uncertainty peaks of training and generalisation."""
        return self.s_gen_peak - self.s_emp_peak

    @property
    def delta_s_grok(self) -> FloatOrArray:
        """Delay between training and generalisation reaching the accuracy threshold."""
        return self.s_gen_grok - self.s_emp_grok


class DelayBounds(NamedTuple):
    """Two-sided bounds on a delay; zero is a bound as well."""

    lower: FloatOrArray
    upper: FloatOrArray


def crossings(lam: RealLike, gamma: RealLike, eps_over_C0: RealLike) -> Crossings:
    """Exact times, by Newton's method on the convex log-risks.

    There is an uncertainty peak if and only if `eps_over_C0 * PEAK_LEVEL < 1`, the same condition
    for both curves; otherwise the peak times are NaN, as uncertainty falls from the start.
    """
    return _events(crossing_s, lam, gamma, eps_over_C0)


def crossings_lambert(lam: RealLike, gamma: RealLike, eps_over_C0: RealLike) -> Crossings:
    """Times from the paper's late-time law with its constants, solved exactly by Lambert's W."""
    return _events(crossing_lambert, lam, gamma, eps_over_C0)


def crossings_edge_newton(
    lam: RealLike, gamma: RealLike, eps_over_C0: RealLike, *, steps: int = 3
) -> Crossings:
    """Times from a few Newton steps on the uniform edge formula."""
    return _events(partial(crossing_edge_newton, steps=steps), lam, gamma, eps_over_C0)


def delay_leading(lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""The paper's delay $\log(1/\nu_-)/(\nu_-+\gamma)$ of both events, in s.

    In its units, $\Delta t = \log\frac{1}{1-\sqrt\lambda} / (\frac{n}{\sigma^2}(1-\sqrt\lambda)^2 +
    \frac1{\tau^2})$. The limit of the exact delay as $\epsilon/C_0 \to 0$ at fixed $\lambda$, and a
    strict upper bound before. NaN for $\lambda \ge 1$, where its derivation does not apply.
    """
    lam, gamma = broadcast(lam=positive("lam", lam), gamma=nonnegative("gamma", gamma))
    nu_minus = np.where(lam < 1.0, lower_edge(lam), 1.0)
    return unwrapped(np.where(lam < 1.0, -np.log(nu_minus) / (nu_minus + gamma), np.nan))


def delay_bounds(level: RealLike, lam: RealLike, gamma: RealLike) -> DelayBounds:
    r"""Bounds on $s_{gen} - s_{emp}$ at risk `level` times $C_0$; NaN for levels of 1 and above.

    For $\lambda > 1$ the slowest mode of generalisation is the atom and the upper bound is
    $\log R / \gamma$, infinite at $\gamma = 0$.
    """
    level, lam, gamma = broadcast(
        level=positive("level", level, allow_inf=True),
        lam=positive("lam", lam),
        gamma=nonnegative("gamma", gamma),
    )
    s_emp = np.asarray(crossing_s(level, "emp", lam, gamma))
    exists = np.isfinite(s_emp)
    s = np.where(exists, s_emp, 0.0)
    log_R = np.asarray(mp_log_G(s, lam) - np.asarray(mp_log_M(s, lam)))
    lower = log_R / (np.exp(-log_R) + gamma)
    slowest = np.where(lam > 1.0, 0.0, lower_edge(lam)) + gamma
    upper = np.full(lam.shape, np.inf)
    np.divide(log_R, slowest, out=upper, where=slowest > 0)
    missing = np.where(exists, 0.0, np.nan)
    return DelayBounds(unwrapped(lower + missing), unwrapped(upper + missing))


def _events(
    crossing: Callable[[RealLike, str, RealLike, RealLike], FloatOrArray],
    lam: RealLike,
    gamma: RealLike,
    eps_over_C0: RealLike,
) -> Crossings:
    eps = positive("eps_over_C0", eps_over_C0)
    return Crossings(
        *(
            crossing(level * eps, which, lam, gamma)
            for level in (PEAK_LEVEL, GROK_LEVEL)
            for which in ("emp", "gen")
        )
    )
