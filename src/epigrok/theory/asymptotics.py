r"""When the risk crosses a level, by formula: Lambert-W and Newton on the uniform edge formula.

Near the lower edge the Marchenko-Pastur density is $\sqrt{u}\,\lambda^{-3/4}/(\pi\nu_-)$ at
$\nu = \nu_- + u$, hence for late times

$$ M(s) \simeq k_{emp}\, s^{-3/2} e^{-\nu_- s}, \qquad G(s) \simeq (k_{emp}/\nu_-)\, s^{-3/2}
   e^{-\nu_- s}, \qquad k_{emp} = \lambda^{-3/4} / (2\sqrt\pi), $$

while for $\nu_- s \ll 1$, $G(s) \simeq \lambda^{-3/4} (\pi s)^{-1/2}$. Each form alone is an upper
bound for $\lambda \le 1$. Times are $s = 2nt/\sigma^2$, levels are risk over initial excess risk.
Levels of 1 and above are never crossed and give NaN; so does a formula outside its range.
"""

import numpy as np
from scipy.special import wrightomega

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
from epigrok.theory.marchenko_pastur import mp_atom, mp_log_G_edge
from epigrok.theory.spectral_rule import log_lower_edge, lower_edge


def edge_prefactors(lam: RealLike) -> tuple[FloatOrArray, FloatOrArray]:
    r"""$(k_{emp}, k_{gen})$ of the late-time law in s; $k_{gen}/k_{emp} = 1/\nu_-$."""
    lam = positive("lam", lam)
    k_emp, nu_minus = lam**-0.75 / (2.0 * np.sqrt(np.pi)), lower_edge(lam)
    k_gen = np.full(lam.shape, np.inf)
    np.divide(k_emp, nu_minus, out=k_gen, where=nu_minus > 0)
    return unwrapped(np.asarray(k_emp)), unwrapped(k_gen)


def edge_constants(
    lam: RealLike, beta: RealLike, alpha: RealLike, C0: RealLike
) -> tuple[FloatOrArray, FloatOrArray, FloatOrArray]:
    r"""$(K_{emp}, K_{gen}, \kappa)$ of the paper's late-time law $K t^{-3/2} e^{-\kappa t}$.

    $K = C_0 k (2\beta)^{-3/2}$ and $\kappa = 2(\beta\nu_- + \alpha)$, with $\beta = n/\sigma^2$ and
    $\alpha = 1/\tau^2$.
    """
    lam, beta, alpha, C0 = broadcast(
        lam=positive("lam", lam),
        beta=positive("beta", beta),
        alpha=nonnegative("alpha", alpha),
        C0=positive("C0", C0),
    )
    k_emp, k_gen = edge_prefactors(lam)
    scale = C0 * (2.0 * beta) ** -1.5
    kappa = 2.0 * (beta * lower_edge(lam) + alpha)
    return unwrapped(k_emp * scale), unwrapped(k_gen * scale), unwrapped(kappa)


def crossing_lambert(level: RealLike, which: str, lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""Time at which the late-time law $k\, s^{-3/2} e^{-(\nu_-+\gamma)s}$ equals `level`.

    On the generalisation side NaN for $\lambda > 1$, whose late law is an atom, not an edge, and
    infinite at $\lambda = 1$, where $k$ is.
    """
    is_gen = side(which) == "gen"
    level, lam, gamma = _checked(level, lam, gamma)
    log_k = _log_k_emp(lam) - (log_lower_edge(lam) if is_gen else 0.0)
    crossing = _power_law_crossing(level, log_k, 1.5, lower_edge(lam) + gamma)
    crossing = np.where(np.isposinf(log_k), np.inf, crossing)
    in_range = (level < 1.0) & ~(is_gen & (lam > 1.0))
    return unwrapped(np.where(in_range, crossing, np.nan))


def crossing_upper_bound(
    level: RealLike, which: str, lam: RealLike, gamma: RealLike
) -> FloatOrArray:
    r"""The smaller of the two power-law crossings: an upper bound for $\lambda \le 1$."""
    crossing = np.asarray(crossing_lambert(level, which, lam, gamma))
    if which == "gen":
        level, lam, gamma = _checked(level, lam, gamma)
        log_k = _log_k_emp(lam) + np.log(2.0)
        early = _power_law_crossing(level, log_k, 0.5, lower_edge(lam) + gamma)
        crossing = np.minimum(crossing, early)
    return unwrapped(crossing)


def crossing_edge_newton(
    level: RealLike, which: str, lam: RealLike, gamma: RealLike, *, steps: int = 3
) -> FloatOrArray:
    r"""`steps` Newton steps from `crossing_upper_bound` towards the edge formula's crossing.

    Generalisation: `mp_log_G_edge`. Training: the late-time law with its first correction,
    $1 - 3/(8z)$, $z = 2\sqrt\lambda s$. NaN for $\lambda > 1$ on the generalisation side and where
    the edge formulas do not reach, which is a crossing at $z$ below about 1.
    """
    is_gen = side(which) == "gen"
    s = np.asarray(crossing_upper_bound(level, which, lam, gamma))
    s = np.where(np.isfinite(s), s, np.nan)
    level, lam, gamma = _checked(level, lam, gamma)
    for _ in range(steps):
        # Far out of its range the formula overflows on its way to NaN.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            log_M, rate = _edge_log_M(s, lam)
            log_risk = log_M
            if is_gen:
                log_risk = _edge_log_G(s, lam)
                rate = np.exp(np.minimum(log_M - log_risk, 300.0))
            gap = log_risk - gamma * s - np.log(level)
            # In log s, where the power laws are straight lines and no step can leave the axis.
            s = s * np.exp(np.clip(gap / (s * (rate + gamma)), -300.0, 300.0))
    return unwrapped(np.where(s < np.inf, s, np.nan))


def crossing_atom(level: RealLike, lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""Generalisation crossing from the atom alone: $\log((1-1/\lambda)/c)/\gamma$, $\lambda > 1$.

    A lower bound. Infinite at $\gamma = 0$ for levels the atom never falls below; 0 for levels
    above the atom, NaN for $\lambda \le 1$.
    """
    level, lam, gamma = _checked(level, lam, gamma)
    atom = np.asarray(mp_atom(lam))
    is_above = atom >= level
    excess = np.where(is_above, np.log(np.where(is_above, atom, 1.0)) - np.log(level), 0.0)
    time = np.where(is_above, np.inf, 0.0)
    with np.errstate(over="ignore"):
        np.divide(excess, gamma, out=time, where=gamma > 0)
    return unwrapped(np.where((lam > 1.0) & (level < 1.0), time, np.nan))


def _checked(level: RealLike, lam: RealLike, gamma: RealLike) -> tuple[Array, ...]:
    return broadcast(
        level=np.minimum(positive("level", level, allow_inf=True), 1.0),
        lam=positive("lam", lam),
        gamma=nonnegative("gamma", gamma),
    )


def _log_k_emp(lam: Array) -> Array:
    return np.asarray(-0.75 * np.log(lam) - np.log(2.0 * np.sqrt(np.pi)))


def _power_law_crossing(level: Array, log_k: Array, power: float, rate: Array) -> Array:
    """Solution of k s^-p e^(-rate s) = level: s = (p/rate) W0((rate/p) (k/level)^(1/p))."""
    log_time = (log_k - np.log(level)) / power
    has_rate = rate > 0
    safe_rate = np.where(has_rate, rate, 1.0)
    # wrightomega(x) is W0(e^x), whose argument itself would overflow.
    omega = np.where(has_rate, wrightomega(np.log(safe_rate / power) + log_time), 0.0)
    with np.errstate(over="ignore"):
        early = np.exp(np.minimum(log_time, 1e3) - omega)
        crossing: Array = np.where(omega > 1.0, power / safe_rate * omega, early)
    return crossing


def _edge_log_M(s: Array, lam: Array) -> tuple[Array, Array]:
    """Late-time log M with its first correction, and its decay rate; NaN where it is negative."""
    correction = 3.0 / (16.0 * np.sqrt(lam) * s)
    correction = np.where(correction < 1.0, correction, np.nan)
    log_M = _log_k_emp(lam) - 1.5 * np.log(s) - lower_edge(lam) * s
    rate = lower_edge(lam) + 1.5 / s - correction / (s * (1.0 - correction))
    return log_M + np.log1p(-correction), rate


def _edge_log_G(s: Array, lam: Array) -> Array:
    defined = np.isfinite(s) & (lam <= 1.0)
    log_G = np.asarray(mp_log_G_edge(np.where(defined, s, 0.0), lam))
    return np.where(defined, log_G, np.nan)
