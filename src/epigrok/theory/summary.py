"""The tables behind the theory figures: columns of equal length, one row per plotted point."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epigrok.errors import UserError
from epigrok.theory.delay import (
    Crossings,
    crossings,
    crossings_edge_newton,
    crossings_lambert,
    delay_leading,
)
from epigrok.theory.excess_risk import log_relative_risk
from epigrok.theory.inputs import Array, FloatOrArray, Which
from epigrok.theory.linear_model import LinearModel
from epigrok.theory.simulation import FiniteSystem, residual_moments, risk_crossing, sample_system
from epigrok.theory.threshold import PEAK_LEVEL, accuracy_closure, eu_closure, eu_closure2

Table = dict[str, NDArray[Any]]
Systems = Mapping[float, Sequence[FiniteSystem]]
"""Finite systems by aspect ratio."""
SIDES: tuple[Which, Which] = ("emp", "gen")
DYNAMICS_LAMBDAS = (0.3, 0.6, 0.9, 0.97)
TRANSITION_LAMBDA = 0.9
DELAY_LAMBDAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)
"""Aspect ratios at which finite systems are drawn, those of the dynamics among them."""
LOOSE_EPS_OVER_C0 = 1e-3
"""A tolerance at which the delay formula is far off, shown beside the model's own."""
QUANTILES = (0.1, 0.5, 0.9)


def summary_table(model: LinearModel, num_seeds: int = 20, seed: int = 0) -> Table:
    """Everything drawn in the four-panel summary.

    Columns: `panel` (dynamics, transition, delay), `quantity` (risk_over_C0, accuracy, eu_nats,
    delta_s_peak, s_peak, s_grok), `source` (limit: many weights, with the paper's closures; finite:
    median over exact finite systems, total risk, two-component closure; leading, lambert,
    edge_newton: delay formulas; loose: limit at eps/C0 = 1e-3), `side` (emp, gen, both), `lam`, `s`
    (NaN where the row does not depend on time), `value`, and for finite systems its quantiles `q10`
    and `q90`, else NaN.
    """
    if num_seeds < 0:
        raise UserError(f"the number of seeds must not be negative, not {num_seeds}")
    if seed < 0:
        raise UserError(f"the seed must not be negative, not {seed}")
    level = PEAK_LEVEL * model.eps / model.initial_excess_risk(min(DELAY_LAMBDAS))
    if level >= 1.0:
        raise UserError(
            f"eps = {model.eps} is too loose: no uncertainty peak at lambda = {min(DELAY_LAMBDAS)}"
        )
    systems = {
        lam: [
            sample_system(model, lam, np.random.default_rng((seed, index, model.num_weights(lam))))
            for index in range(num_seeds)
        ]
        for lam in DELAY_LAMBDAS
    }
    blocks = [
        *_dynamics_blocks(model, systems),
        *_event_blocks(model),
        *_delay_blocks(model, systems),
    ]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def delay_error_table(lams: Array, eps_over_C0: Array, gamma: float = 0.0) -> Table:
    """Delay of the uncertainty peaks on a grid, exactly and by each formula.

    Columns: `lam`, `eps_over_C0`, `gamma`, `delta_s_exact`, and per formula (`leading`, `lambert`,
    `edge_newton_1`, `edge_newton_3`) `delta_s_<formula>` and `relative_error_<formula>`; NaN where
    the formula has no value.
    """
    lam, eps = (grid.reshape(-1) for grid in np.meshgrid(lams, eps_over_C0, indexing="ij"))
    exact = np.asarray(crossings(lam, gamma, eps).delta_s_peak)
    formulas = {
        "leading": delay_leading(lam, gamma),
        "lambert": crossings_lambert(lam, gamma, eps).delta_s_peak,
        "edge_newton_1": crossings_edge_newton(lam, gamma, eps, steps=1).delta_s_peak,
        "edge_newton_3": crossings_edge_newton(lam, gamma, eps, steps=3).delta_s_peak,
    }
    table: Table = {"lam": lam, "eps_over_C0": eps, "gamma": np.full(lam.size, gamma)}
    table["delta_s_exact"] = exact
    for name, delta_s in formulas.items():
        table[f"delta_s_{name}"] = np.asarray(delta_s)
        table[f"relative_error_{name}"] = np.asarray(delta_s) / exact - 1.0
    return table


def event_times(model: LinearModel, lam: float) -> Crossings:
    """Exact times of peaks and thresholds in the limit of many weights."""
    return crossings(lam, model.gamma, model.eps / model.initial_excess_risk(lam))


def _dynamics_blocks(model: LinearModel, systems: Systems) -> Iterable[Table]:
    for lam in DYNAMICS_LAMBDAS:
        C0 = model.initial_excess_risk(lam)
        end = 3.0 * float(event_times(model, lam).s_gen_grok)
        # Dense both on a logarithmic axis and, around the events, on a linear one.
        s = np.union1d(np.geomspace(0.1, end, 120), np.linspace(0.0, end, 150))
        for which in SIDES:
            risk = C0 * np.exp(log_relative_risk(s, which, lam, model.gamma))
            moments = [residual_moments(system, s, which) for system in systems[lam]]
            risks = {"risk_over_C0": (risk / C0, [m.risk / C0 for m in moments])}
            yield from _curve_blocks("dynamics", which, lam, s, risks)
            if lam != TRANSITION_LAMBDA:
                continue
            curves = {
                # Averaging success over a Gaussian mean gap gives the closure of the total risk.
                "accuracy": (
                    accuracy_closure(risk, model.eps),
                    [accuracy_closure(m.risk, model.eps) for m in moments],
                ),
                "eu_nats": (
                    eu_closure(risk, model.eps),
                    [eu_closure2(m.mean_square, m.variance, model.eps) for m in moments],
                ),
            }
            yield from _curve_blocks("transition", which, lam, s, curves)


def _curve_blocks(
    panel: str,
    which: Which,
    lam: float,
    s: Array,
    curves: Mapping[str, tuple[FloatOrArray, Sequence[FloatOrArray]]],
) -> Iterable[Table]:
    for quantity, (limit, finite) in curves.items():
        keys = {"panel": panel, "quantity": quantity, "side": which}
        yield _block(keys | {"source": "limit"}, lam, s, np.asarray(limit))
        if finite:
            low, middle, high = np.quantile(np.asarray(finite), QUANTILES, axis=0)
            yield _block(keys | {"source": "finite"}, lam, s, middle, (low, high))


def _event_blocks(model: LinearModel) -> Iterable[Table]:
    times = event_times(model, TRANSITION_LAMBDA)._asdict()
    for which in SIDES:
        for event in ("peak", "grok"):
            time = np.array([times[f"s_{which}_{event}"]])
            keys = {"panel": "transition", "quantity": f"s_{event}", "side": which}
            yield _block(keys | {"source": "limit"}, TRANSITION_LAMBDA, time, time)


def _delay_blocks(model: LinearModel, systems: Systems) -> Iterable[Table]:
    keys = {"panel": "delay", "quantity": "delta_s_peak", "side": "both"}
    lam, gamma = np.linspace(0.05, 0.99, 95), model.gamma
    eps = model.eps / model.initial_excess_risk(lam)
    curves = {
        "limit": crossings(lam, gamma, eps).delta_s_peak,
        "leading": delay_leading(lam, gamma),
        "lambert": crossings_lambert(lam, gamma, eps).delta_s_peak,
        "edge_newton": crossings_edge_newton(lam, gamma, eps).delta_s_peak,
        "loose": crossings(lam, gamma, LOOSE_EPS_OVER_C0).delta_s_peak,
    }
    for source, delta_s in curves.items():
        yield _block(keys | {"source": source}, lam, np.full(lam.size, np.nan), np.asarray(delta_s))
    for aspect, drawn in systems.items():
        if not drawn:
            continue
        peaks = [
            [risk_crossing(system, PEAK_LEVEL * model.eps, which) for which in SIDES]
            for system in drawn
        ]
        if not np.isfinite(peaks).all():
            raise UserError(
                f"a finite system at lambda = {aspect} has no uncertainty peak: its risk does not "
                f"pass eps = {model.eps}; lower sigma2 = {model.sigma2} or change eps"
            )
        delays = np.diff(peaks, axis=1)[:, 0]
        low, middle, high = np.quantile(delays, QUANTILES)[:, None]
        no_time = np.array([np.nan])
        yield _block(keys | {"source": "finite"}, aspect, no_time, middle, (low, high))


def _block(
    keys: dict[str, str],
    lam: float | Array,
    s: Array,
    value: Array,
    band: tuple[Array, Array] | None = None,
) -> Table:
    missing = np.full(value.size, np.nan)
    low, high = band if band is not None else (missing, missing)
    columns = {
        name: np.full(value.size, keys[name]) for name in ("panel", "quantity", "source", "side")
    }
    lams = np.broadcast_to(np.asarray(lam, dtype=np.float64), value.shape)
    return {**columns, "lam": lams, "s": s, "value": value, "q10": low, "q90": high}
