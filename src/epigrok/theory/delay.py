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

from epigrok.errors import UserError
from epigrok.theory.asymptotics import crossing_edge_newton, crossing_lambert
from epigrok.theory.excess_risk import crossing_s, crossing_time
from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    unwrapped,
)
from epigrok.theory.marchenko_pastur import mp_log_R
from epigrok.theory.quadrature import in_blocks
from epigrok.theory.spectral_rule import atom_mass, log_lower_edge, lower_edge, tilted_rule
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
    "delay_s",
    "event_levels",
    "validity_report",
]

_TINY = float(np.finfo(np.float64).tiny)
_SMALLEST_EPS = _TINY / GROK_LEVEL  # the grokking level is a normal float, with all its digits
_MAX_NEWTON_STEPS = 60


class Crossings(NamedTuple):
    """Times of the two events on the two curves, and how far these are apart.

    NaN: no such event. Infinity: never, or after `LARGEST_TIME`; `is_never_crossed` tells which.
    """

    s_emp_peak: FloatOrArray
    s_gen_peak: FloatOrArray
    s_emp_grok: FloatOrArray
    s_gen_grok: FloatOrArray
    delta_s_peak: FloatOrArray
    """Delay between the uncertainty peaks of training and generalisation."""
    delta_s_grok: FloatOrArray
    """Delay between training and generalisation reaching the accuracy threshold."""


class DelayBounds(NamedTuple):
    """Two-sided bounds on a delay; zero is a bound as well."""

    lower: FloatOrArray
    upper: FloatOrArray


def crossings(lam: RealLike, gamma: RealLike, eps_over_C0: RealLike) -> Crossings:
    """Exact times, by Newton's method on the convex log-risks.

    There is an uncertainty peak if and only if `eps_over_C0 * PEAK_LEVEL < 1`, the same condition
    for both curves; otherwise the peak times are NaN, as uncertainty falls from the start. The
    delays are solved for themselves: differences of the times would lose the digits of a delay
    much shorter than the times.
    """
    times = _times(crossing_s, lam, gamma, eps_over_C0)
    peak = _delay_between(times[0], times[1], lam, gamma)
    return Crossings(*times, peak, _delay_between(times[2], times[3], lam, gamma))


def crossings_lambert(lam: RealLike, gamma: RealLike, eps_over_C0: RealLike) -> Crossings:
    """Times from the paper's late-time law with its constants, solved exactly by Lambert's W."""
    return _by_formula(crossing_lambert, lam, gamma, eps_over_C0)


def crossings_edge_newton(
    lam: RealLike, gamma: RealLike, eps_over_C0: RealLike, *, steps: int = 3
) -> Crossings:
    """Times from a few Newton steps on the uniform edge formula."""
    return _by_formula(partial(crossing_edge_newton, steps=steps), lam, gamma, eps_over_C0)


def event_levels(eps_over_C0: RealLike) -> tuple[Array, Array]:
    """Risk over C0 at the uncertainty peak and at the accuracy threshold."""
    eps = positive("eps_over_C0", eps_over_C0)
    if (eps < _SMALLEST_EPS).any():
        value = eps[eps < _SMALLEST_EPS].flat[0]
        raise UserError(f"eps_over_C0 must be at least {_SMALLEST_EPS:.3g}, not {value}")
    # A level of 1 or more is never crossed, whatever it is; the largest floats would overflow.
    eps = np.minimum(eps, 1e300)
    return np.asarray(PEAK_LEVEL * eps), np.asarray(GROK_LEVEL * eps)


def delay_leading(lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""The paper's delay $\log(1/\nu_-)/(\nu_-+\gamma)$ of both events, in s.

    In its units, $\Delta t = \log\frac{1}{1-\sqrt\lambda} / (\frac{n}{\sigma^2}(1-\sqrt\lambda)^2 +
    \frac1{\tau^2})$. The limit of the exact delay as $\epsilon/C_0 \to 0$ at fixed $\lambda$, and a
    strict upper bound before. NaN for $\lambda \ge 1$, where its derivation does not apply.
    """
    lam, gamma = broadcast(lam=positive("lam", lam), gamma=nonnegative("gamma", gamma))
    below_one = np.where(lam < 1.0, lam, 0.5)
    leading = -log_lower_edge(below_one) / (lower_edge(below_one) + gamma)
    return unwrapped(np.where(lam < 1.0, leading, np.nan))


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
    lower, upper = _bounds(np.asarray(crossing_s(level, "emp", lam, gamma)), lam, gamma)
    return DelayBounds(unwrapped(lower), unwrapped(upper))


def delay_s(level: RealLike, lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""Delay $\Delta s = s_{gen} - s_{emp}$ at risk `level` times $C_0$, relative to itself.

    Where it is short against the times, the root of

    $$ \log R(s_{emp}) + \log\frac{G(s_{emp} + \Delta s)}{G(s_{emp})} - \gamma\,\Delta s = 0, $$

    in which nothing cancels. It stays between the `delay_bounds` also in rounding. NaN and
    infinity as in `crossing_s`.
    """
    s_emp, s_gen = (crossing_s(level, which, lam, gamma) for which in ("emp", "gen"))
    return _delay_between(s_emp, s_gen, lam, gamma)


def _delay_between(
    s_emp: RealLike, s_gen: RealLike, lam: RealLike, gamma: RealLike
) -> FloatOrArray:
    s_emp, s_gen, lam, gamma = broadcast(
        s_emp=np.asarray(s_emp),
        s_gen=np.asarray(s_gen),
        lam=positive("lam", lam),
        gamma=nonnegative("gamma", gamma),
    )
    lower, upper = _bounds(s_emp, lam, gamma)
    delay = np.where(s_gen < np.inf, s_gen - np.where(s_gen < np.inf, s_emp, 0.0), s_gen)
    is_short = delay < 0.1 * s_emp
    delay[is_short] = in_blocks(
        _short_delay, s_emp[is_short], lower[is_short], lam[is_short], gamma[is_short]
    )
    return unwrapped(np.clip(delay, lower, upper))


def _bounds(s_emp: Array, lam: Array, gamma: Array) -> tuple[Array, Array]:
    exists = np.isfinite(s_emp)
    edge = np.where(lam > 1.0, 0.0, lower_edge(lam))
    log_R = np.asarray(mp_log_R(np.where(exists, s_emp, 0.0), lam))
    # Late on R comes as close to 1/nu_- as rounding, which must not order the bounds.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_R = np.where(lam < 1.0, np.minimum(log_R, -log_lower_edge(lam)), log_R)
        lower = log_R / (np.maximum(np.exp(-log_R), edge) + gamma)
        upper = np.where(log_R > 0, log_R / (edge + gamma), 0.0)
    missing = np.where(exists, 0.0, np.nan)
    return lower + missing, upper + missing


def _short_delay(s: Array, start: Array, lam: Array, gamma: Array) -> Array:
    """Newton's method from a lower bound: on a convex curve the steps only approach the root."""
    rule = tilted_rule(lam, s)
    continuous = rule.weights.sum(axis=-1)
    with np.errstate(over="ignore"):
        log_share = lower_edge(lam) * s + np.log(np.maximum(atom_mass(lam), _TINY))
        atom = np.where(lam > 1.0, np.exp(np.minimum(log_share - rule.log_scale, 700.0)), 0.0)
    log_R, total = np.asarray(mp_log_R(s, lam)), continuous + atom
    delay = start.copy()
    for _ in range(_MAX_NEWTON_STEPS):
        decay = rule.weights * np.exp(-delay[:, None] * rule.nu)
        rest = decay.sum(axis=-1) + atom
        lost = (rule.weights * np.expm1(-delay[:, None] * rule.nu)).sum(axis=-1) / total
        fall = np.where(lost > -0.5, np.log1p(np.maximum(lost, -0.5)), np.log(rest / total))
        rate = (decay * rule.nu).sum(axis=-1) / rest + gamma
        step = (log_R + fall - gamma * delay) / rate
        delay = np.maximum(delay + step, start)
        if (np.abs(step) <= 4e-16 * delay).all():
            break
    return delay


def _times(
    crossing: Callable[..., FloatOrArray],
    lam: RealLike,
    gamma: RealLike,
    eps_over_C0: RealLike,
) -> tuple[FloatOrArray, FloatOrArray, FloatOrArray, FloatOrArray]:
    peak, grok = event_levels(eps_over_C0)
    emp, gen = (partial(crossing, which=which, lam=lam, gamma=gamma) for which in ("emp", "gen"))
    return emp(peak), gen(peak), emp(grok), gen(grok)


def _by_formula(
    crossing: Callable[..., FloatOrArray],
    lam: RealLike,
    gamma: RealLike,
    eps_over_C0: RealLike,
) -> Crossings:
    times = _times(crossing, lam, gamma, eps_over_C0)
    return Crossings(*times, times[1] - times[0], times[3] - times[2])
