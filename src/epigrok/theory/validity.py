r"""Which assumptions of the paper hold for given parameters, with the numbers that decide.

The exact times need only that the event exists. The late-time law, uniform mode weights,
self-averaging over many modes, a negligible floor and covariance-carried risk are what the paper's
formulas and closures need on top.
"""

from dataclasses import dataclass

import numpy as np

from epigrok.errors import UserError
from epigrok.theory.excess_risk import crossing_s, is_never_crossed
from epigrok.theory.inputs import (
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    scalar,
    unwrapped,
)
from epigrok.theory.marchenko_pastur import mp_edges, mp_log_G
from epigrok.theory.threshold import GROK_LEVEL, PEAK_LEVEL

MIN_EDGE_TIME = 10.0
r"""Least $\nu_- s_{emp}$: from here the late-time law is within 15 % on the generalisation side."""
MAX_PRIOR_SHARE = 0.1
r"""Most $\gamma/\nu_-$: up to here edge modes weigh what the others do, to 20 %."""
MIN_MODES = 10.0
"""Fewest effective modes: the risk scatters by about one over their number."""
MAX_FLOOR = 0.1 * GROK_LEVEL
r"""Most $L_{gen,\infty}/\epsilon$: a tenth of the grokking level."""
MIN_COVARIANCE_SHARE = 0.9
"""Least share of covariance in the risk: the closure's peak is then right to 1 %."""
_LATEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One condition, the number it is about, and what fails with it."""

    name: str
    value: float | None
    """The number decided on; None where it was not given, NaN where it does not exist."""
    requirement: str
    holds: bool | None
    """None where there is no number to decide on."""
    meaning: str


@dataclass(frozen=True, kw_only=True)
class ValidityReport:
    """Diagnostics of one parameter set at the uncertainty peaks."""

    nu_minus_s_emp: float
    nu_minus_s_gen: float
    gamma_over_nu_minus: float
    effective_modes: float | None
    assumptions: tuple[Assumption, ...]

    @property
    def all_hold(self) -> bool:
        """Whether no assumption is known to fail."""
        return all(assumption.holds is not False for assumption in self.assumptions)


def effective_modes(s: RealLike, lam: RealLike, d: RealLike) -> FloatOrArray:
    r"""$d_{eff}(s) = d\, G(s)^2 / G(2s)$: how many of d modes still carry the risk at time s."""
    s, lam, d = broadcast(s=nonnegative("s", s), lam=positive("lam", lam), d=positive("d", d))
    log_share = 2.0 * np.asarray(mp_log_G(s, lam)) - mp_log_G(np.minimum(2.0 * s, _LATEST), lam)
    return unwrapped(np.asarray(d * np.exp(np.minimum(log_share, 0.0))))


def validity_report(
    lam: RealLike,
    gamma: RealLike,
    eps_over_C0: RealLike,
    d: int | None = None,
    floor_over_eps: RealLike | None = None,
    covariance_share: RealLike | None = None,
) -> ValidityReport:
    r"""Report on the assumptions behind closures and delay formulas.

    Args:
        lam: Aspect ratio.
        gamma: $\sigma^2 / (n\tau^2)$.
        eps_over_C0: Tolerance over initial excess risk.
        d: Number of weights, for the number of modes that carry the risk at the late peak.
        floor_over_eps: Final generalisation risk over tolerance.
        covariance_share: $v/(v + m_2)$, the covariance's share of the risk at the peak.
    """
    lam = scalar(positive("lam", lam), "lam")
    gamma = scalar(nonnegative("gamma", gamma), "gamma")
    eps = scalar(positive("eps_over_C0", eps_over_C0), "eps_over_C0")
    level = min(PEAK_LEVEL * eps, _LATEST)
    floor = _optional("floor_over_eps", floor_over_eps)
    share = _optional("covariance_share", covariance_share)
    if share is not None and share > 1.0:
        raise UserError(f"covariance_share must be at most 1, not {share}")
    s_emp, s_gen = (float(crossing_s(level, which, lam, gamma)) for which in ("emp", "gen"))
    never = bool(is_never_crossed(level, "gen", lam, gamma))
    nu_minus = float(mp_edges(lam)[0])
    modes = None
    if d is not None and np.isfinite(s_gen):
        modes = float(effective_modes(s_gen, lam, d))
    edge_time = nu_minus * s_emp
    prior_share = gamma / nu_minus if nu_minus > 0 else (np.inf if gamma > 0 else 0.0)
    return ValidityReport(
        nu_minus_s_emp=edge_time,
        nu_minus_s_gen=nu_minus * s_gen if nu_minus > 0 or np.isfinite(s_gen) else np.nan,
        gamma_over_nu_minus=prior_share,
        effective_modes=modes,
        assumptions=(
            *_existence(lam, eps, s_gen, never),
            *_asymptotic(edge_time, prior_share),
            *_finite_system(modes, floor, share),
        ),
    )


def _optional(name: str, value: RealLike | None) -> float | None:
    return None if value is None else scalar(nonnegative(name, value), name)


def _verdict(value: float, is_fine: bool) -> bool | None:
    return None if np.isnan(value) else is_fine


def _existence(lam: float, eps: float, s_gen: float, never: bool) -> tuple[Assumption, ...]:
    return (
        Assumption(
            name="peak_exists",
            value=PEAK_LEVEL * eps,
            requirement="1.0991 eps/C0 < 1",
            holds=PEAK_LEVEL * eps < 1.0,
            meaning="otherwise the risk starts below the peak level: uncertainty only falls, and "
            "the peak times are NaN",
        ),
        Assumption(
            name="threshold_is_ahead",
            value=GROK_LEVEL * eps,
            requirement="eps/(8 C0) < 1",
            holds=GROK_LEVEL * eps < 1.0,
            meaning="otherwise the accuracy threshold is met from the start, and the grokking "
            "times are NaN",
        ),
        Assumption(
            name="peak_is_reached",
            value=s_gen,
            requirement="s_gen_peak < infinity",
            holds=_verdict(s_gen, not never),
            meaning="otherwise directions without data (lambda > 1) are never unlearned without a "
            "prior: the generalisation risk stays at (1 - 1/lambda) C0",
        ),
        Assumption(
            name="fewer_weights_than_data",
            value=lam,
            requirement="lambda < 1",
            holds=lam < 1.0,
            meaning="otherwise the spectrum reaches zero and the late-time law with its delay "
            "formula does not apply",
        ),
    )


def _asymptotic(edge_time: float, prior_share: float) -> tuple[Assumption, ...]:
    return (
        Assumption(
            name="late_time",
            value=edge_time,
            requirement=f"nu_- s_emp_peak >= {MIN_EDGE_TIME:g}",
            holds=_verdict(edge_time, edge_time >= MIN_EDGE_TIME),
            meaning="otherwise the crossing comes before the edge of the spectrum rules alone, and "
            "the leading-order delay is far too long",
        ),
        Assumption(
            name="uniform_weights",
            value=prior_share,
            requirement=f"gamma/nu_- <= {MAX_PRIOR_SHARE:g}",
            holds=prior_share <= MAX_PRIOR_SHARE,
            meaning="otherwise the posterior keeps its width along the slow directions, whose "
            "covariance gap is then smaller than the average one",
        ),
    )


def _finite_system(
    modes: float | None, floor: float | None, share: float | None
) -> tuple[Assumption, ...]:
    return (
        Assumption(
            name="many_modes",
            value=modes,
            requirement=f"d_eff(s_gen_peak) >= {MIN_MODES:g}",
            holds=None if modes is None else modes >= MIN_MODES,
            meaning="otherwise a few slow modes carry the risk and it scatters from system to "
            "system by about 1/d_eff",
        ),
        Assumption(
            name="negligible_floor",
            value=floor,
            requirement=f"L_gen_inf/eps <= {MAX_FLOOR:g}",
            holds=None if floor is None else floor <= MAX_FLOOR,
            meaning="otherwise accuracy, which sees total risk, stays below what excess risk "
            "promises",
        ),
        Assumption(
            name="covariance_carries_risk",
            value=share,
            requirement=f"v/(v + m2) >= {MIN_COVARIANCE_SHARE:g}",
            holds=None if share is None else share >= MIN_COVARIANCE_SHARE,
            meaning="otherwise the one-Gaussian closure counts the mean gap as uncertainty: its "
            "peak is too high and too late in risk",
        ),
    )
