r"""The paper's excess risks under uniform mode weights, and the exact times they cross a level.

With $\beta = n/\sigma^2$, $\alpha = 1/\tau^2$, $\gamma = \alpha/\beta$ and $s = 2\beta t$,

$$ L_{gen}(t) = C_0\, e^{-\gamma s} G(s), \qquad L_{emp}(t) = C_0\, e^{-\gamma s} M(s). $$

Both start at $C_0$ and, being mixtures of decaying exponentials, their logarithms are convex and
decreasing: every level below $C_0$ is crossed at most once, and Newton's method finds where.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from epigrok.errors import UserError
from epigrok.theory.asymptotics import crossing_atom, crossing_upper_bound
from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    quotient,
    side,
    unwrapped,
)
from epigrok.theory.marchenko_pastur import mp_atom, mp_log_G, mp_log_M, mp_log_M_rate
from epigrok.theory.quadrature import in_blocks
from epigrok.theory.spectral_transforms import log_G, log_M

LARGEST_TIME = 1e308
"""Later times do not fit a float and are infinite; `is_never_crossed` tells them from never."""
_MAX_NEWTON_STEPS = 200  # seven are usual; only rounding could ever ask for more than fifty


def log_relative_risk(s: RealLike, which: str, lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""$\log(L/C_0) = -\gamma s + \log G(s)$ (`gen`) or $-\gamma s + \log M(s)$ (`emp`)."""
    transform = mp_log_G if side(which) == "gen" else mp_log_M
    s, lam, gamma = _checked(s, lam, gamma)
    with np.errstate(over="ignore"):
        return unwrapped(np.asarray(transform(s, lam) - gamma * s))


def log_relative_risk_of_spectrum(
    s: RealLike, which: str, nu: RealLike, gamma: RealLike
) -> FloatOrArray:
    r"""The paper's self-averaged sums: the same for $d$ given eigenvalues instead of their law.

    $\log \frac1d \sum_i e^{-s(\nu_i + \gamma)}$ (`gen`), with a factor $\nu_i$ (`emp`), in units of
    $C_0$. The average is exact if the initial gaps are spread evenly over the modes.
    """
    is_emp = side(which) == "emp"
    nu, gamma = nonnegative("nu", nu), nonnegative("gamma", gamma)
    if nu.ndim != 1 or not nu.size:
        raise UserError(f"nu must be a list of eigenvalues, not of shape {nu.shape}")
    s, gamma = broadcast(s=nonnegative("s", s), gamma=gamma)
    with np.errstate(over="ignore", divide="ignore"):
        exponents = np.log(nu) - s[..., None] * nu if is_emp else -s[..., None] * nu
        # The slowest mode decides late on: the others are relative to it.
        return unwrapped(logsumexp(exponents, axis=-1) - np.log(nu.size) - gamma * s)


def decay_rate(s: RealLike, which: str, lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""$-d\log L/ds$: $M/G + \gamma$ (`gen`) or $-M'/M + \gamma$ (`emp`), exact."""
    which = side(which)
    s, lam, gamma = _checked(s, lam, gamma)
    return unwrapped(_log_risk_and_rate(s, which, lam, gamma)[1])


def crossing_s(level: RealLike, which: str, lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""Time $s$ at which $L/C_0$ equals `level`.

    Returns:
        NaN where `level` is 1 or more: the risk starts below it. Infinity where the risk never
        falls that far, see `is_never_crossed`, and where it does so after `LARGEST_TIME`.
    """
    which = side(which)
    level, lam, gamma = _checked_level(level, lam, gamma)
    never = np.asarray(is_never_crossed(level, which, lam, gamma))
    # From the right of a convex curve the first Newton step lands left of the root, after which
    # the steps only approach it; with an atom, start from its lower bound on the left.
    start = np.asarray(crossing_upper_bound(level, which, lam, gamma))
    if which == "gen":
        start = np.where(lam > 1.0, crossing_atom(level, lam, gamma), start)
    crossing = np.where(never, np.inf, np.where(level < 1.0, start, np.nan))
    is_late = ~never & (level < 1.0) & (crossing >= LARGEST_TIME)
    if is_late.any():
        end = np.full(int(is_late.sum()), LARGEST_TIME)
        last = np.asarray(log_relative_risk(end, which, lam[is_late], gamma[is_late]))
        crossing[is_late] = np.where(last <= np.log(level[is_late]), LARGEST_TIME, np.inf)
    solvable = (level < 1.0) & (crossing <= LARGEST_TIME)
    crossing[solvable] = _newton(
        crossing[solvable], level[solvable], which, lam[solvable], gamma[solvable]
    )
    return unwrapped(crossing)


def is_never_crossed(
    level: RealLike, which: str, lam: RealLike, gamma: RealLike
) -> NDArray[np.bool_]:
    r"""Whether the risk stays above `level` for ever.

    That needs generalisation, $\lambda > 1$, $\gamma = 0$ and a level of at most $1 - 1/\lambda$.
    """
    is_gen = side(which) == "gen"
    level, lam, gamma = _checked_level(level, lam, gamma)
    return np.asarray(is_gen & (lam > 1.0) & (gamma == 0.0) & (level <= mp_atom(lam)))


def log_excess_risk(
    t: RealLike, which: str, lam: RealLike, beta: RealLike, alpha: RealLike, C0: RealLike
) -> FloatOrArray:
    r"""$\log L$ at time $t$ in the paper's units: $\beta = n/\sigma^2$, $\alpha = 1/\tau^2$."""
    beta, C0 = positive("beta", beta), positive("C0", C0)
    s = quotient("2 beta t", nonnegative("t", t), 0.5 / beta)
    gamma = quotient("gamma = alpha / beta", nonnegative("alpha", alpha), beta)
    log_risk = log_relative_risk(s, which, lam, gamma)
    return unwrapped(np.asarray(log_risk + np.log(C0)))


def crossing_time(
    c: RealLike, which: str, lam: RealLike, beta: RealLike, alpha: RealLike, C0: RealLike
) -> FloatOrArray:
    r"""Time $t$ at which the excess risk equals `c`; NaN and infinity as in `crossing_s`."""
    beta, C0 = positive("beta", beta), positive("C0", C0)
    level = quotient("c / C0", positive("c", c), C0)
    gamma = quotient("gamma = alpha / beta", nonnegative("alpha", alpha), beta)
    with np.errstate(over="ignore"):
        return unwrapped(np.asarray(crossing_s(level, which, lam, gamma) * (0.5 / beta)))


def _checked(s: RealLike, lam: RealLike, gamma: RealLike) -> tuple[Array, ...]:
    return broadcast(
        s=nonnegative("s", s), lam=positive("lam", lam), gamma=nonnegative("gamma", gamma)
    )


def _checked_level(level: RealLike, lam: RealLike, gamma: RealLike) -> tuple[Array, ...]:
    return broadcast(
        level=positive("level", level, allow_inf=True),
        lam=positive("lam", lam),
        gamma=nonnegative("gamma", gamma),
    )


def _log_risk_and_rate(s: Array, which: str, lam: Array, gamma: Array) -> tuple[Array, Array]:
    log_m = log_M(s, lam)
    if which == "emp":
        return log_m - gamma * s, np.asarray(mp_log_M_rate(s, lam) + gamma)
    log_g = in_blocks(log_G, s, lam)
    return log_g - gamma * s, np.exp(log_m - log_g) + gamma


def _newton(start: Array, level: Array, which: str, lam: Array, gamma: Array) -> Array:
    """Roots of log L - log level, to rounding."""
    s, log_level = start.copy(), np.log(level)
    active = np.arange(s.size)
    for iteration in range(_MAX_NEWTON_STEPS):
        if not active.size:
            break
        here, lam_here, gamma_here = s[active], lam[active], gamma[active]
        log_risk, rate = _log_risk_and_rate(here, which, lam_here, gamma_here)
        step = (log_risk - log_level[active]) / rate
        s[active] = np.maximum(here + step, 0.0)
        # Left of the root true steps are positive: any other is rounding.
        is_moving = (np.abs(step) > 1e-15 * here) & ((step > 0) | (iteration == 0))
        active = active[is_moving]
    assert not active.size, "Newton's method on a convex curve did not settle"
    return s
