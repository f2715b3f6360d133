"""`epigrok theory delay`: exact times of the solvable model, its formulas and their validity."""

import dataclasses
import json
import math
from typing import Any

from epigrok.theory.asymptotics import crossing_atom
from epigrok.theory.delay import (
    Crossings,
    crossings,
    crossings_edge_newton,
    crossings_lambert,
    delay_bounds,
    delay_leading,
)
from epigrok.theory.threshold import GROK_LEVEL, PEAK_LEVEL
from epigrok.theory.validity import ValidityReport, validity_report

_EVENTS = {"peak": "EU peak (risk = 1.0991 eps)", "grok": "accuracy threshold (risk = eps/8)"}
_FORMULAS = {
    "lambert": "Lambert W",
    "edge_newton_1": "edge-Newton, 1 step",
    "edge_newton_3": "edge-Newton, 3 steps",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DelayRequest:
    """Print exact peak and threshold times, every approximation, bounds and a validity report.

    Times are s = 2nt/sigma^2. Without --json a table; with it one JSON object, where null is a time
    that does not exist (a risk that starts below the level, a formula outside its range) and "inf"
    a level that is never reached.
    """

    lam: float
    """Aspect ratio lambda = d/n, any positive number."""
    eps_over_c0: float
    """Tolerance over initial excess risk, eps/C0."""
    gamma: float = 0.0
    """sigma^2/(n tau^2), the prior against the data; 0 is a flat prior."""
    d: int | None = None
    """Number of weights, for the effective number of modes at the late peak."""
    floor_over_eps: float | None = None
    """Final generalisation risk over eps, for the validity report."""
    covariance_share: float | None = None
    """Share of the covariance in the risk at the peak, for the validity report."""
    json: bool = False
    """Print JSON."""


def print_delay(request: DelayRequest) -> None:
    """Print the report as JSON or as a table."""
    parameters = (request.lam, request.gamma, request.eps_over_c0)
    times = delay_numbers(*parameters)
    report = validity_report(
        *parameters, request.d, request.floor_over_eps, request.covariance_share
    )
    if request.json:
        validity = dataclasses.asdict(report) | {"all_hold": report.all_hold}
        content = {
            "lam": request.lam,
            "gamma": request.gamma,
            "eps_over_C0": request.eps_over_c0,
            **times,
            "validity": validity,
        }
        print(json.dumps(_strict(content), indent=2, allow_nan=False))
    else:
        print(delay_text(request, times, report))


def delay_numbers(lam: float, gamma: float, eps_over_C0: float) -> dict[str, float]:
    """Every time and delay by name: exact, by formula, and bounds.

    `s_emp_peak` is exact, `s_emp_lambert_peak` a formula's; likewise `s_gen_`, `delta_s_` and
    `_grok`. `delta_s_paper` is the leading-order delay, the same for both events.
    """
    numbers = _named(crossings(lam, gamma, eps_over_C0), "")
    numbers["delta_s_paper"] = float(delay_leading(lam, gamma))
    for event, level in (("peak", PEAK_LEVEL), ("grok", GROK_LEVEL)):
        bounds = delay_bounds(level * eps_over_C0, lam, gamma)
        numbers[f"delta_s_lower_{event}"] = float(bounds.lower)
        numbers[f"delta_s_upper_{event}"] = float(bounds.upper)
        numbers[f"s_gen_atom_{event}"] = float(crossing_atom(level * eps_over_C0, lam, gamma))
    formulas = {
        "lambert": crossings_lambert(lam, gamma, eps_over_C0),
        "edge_newton_1": crossings_edge_newton(lam, gamma, eps_over_C0, steps=1),
        "edge_newton_3": crossings_edge_newton(lam, gamma, eps_over_C0, steps=3),
    }
    for formula, times in formulas.items():
        numbers |= _named(times, f"{formula}_")
    return numbers


def delay_text(request: DelayRequest, numbers: dict[str, float], report: ValidityReport) -> str:
    """The report for people."""
    lines = [
        f"lambda = {request.lam:g}, gamma = {request.gamma:g}, eps/C0 = {request.eps_over_c0:g}; "
        "times are s = 2nt/sigma^2",
    ]
    heading = f"{'':<24}{'training':>14}{'generalisation':>16}{'delay':>14}{'error':>14}"
    for event, title in _EVENTS.items():
        exact = numbers[f"delta_s_{event}"]
        lines += ["", title, heading, _row("exact", numbers, event, "", exact)]
        lines += [_row(name, numbers, event, f"{key}_", exact) for key, name in _FORMULAS.items()]
        paper = numbers["delta_s_paper"]
        lines.append(f"  {'leading order (paper)':<52}{paper:>14.7g}{_error(paper, exact):>14}")
        bounds = (numbers[f"delta_s_{end}_{event}"] for end in ("lower", "upper"))
        for end, bound in zip(("lower bound", "upper bound"), bounds):
            lines.append(f"  {end:<52}{bound:>14.7g}{_error(bound, exact):>14}")
        if request.lam > 1.0:
            atom = numbers[f"s_gen_atom_{event}"]
            lines.append(f"  {'atom alone (lambda > 1)':<36}{atom:>16.7g}")
    lines += ["", "validity"]
    for item in report.assumptions:
        verdict = {True: "holds", False: "FAILS", None: "unknown"}[item.holds]
        value = "-" if item.value is None else f"{item.value:.4g}"
        lines.append(f"  {verdict:<9}{item.name:<25}{item.requirement:<26}value: {value}")
        if item.holds is False:
            lines.append(f"           {item.meaning.removeprefix('otherwise ')}")
    return "\n".join(lines)


def _named(times: Crossings, prefix: str) -> dict[str, float]:
    named = {f"{field[:6]}{prefix}{field[6:]}": float(v) for field, v in times._asdict().items()}
    named[f"delta_s_{prefix}peak"] = float(times.delta_s_peak)
    named[f"delta_s_{prefix}grok"] = float(times.delta_s_grok)
    return named


def _row(name: str, numbers: dict[str, float], event: str, prefix: str, exact: float) -> str:
    emp, gen, delta = (numbers[f"{x}_{prefix}{event}"] for x in ("s_emp", "s_gen", "delta_s"))
    error = "" if name == "exact" else _error(delta, exact)
    return f"  {name:<22}{emp:>14.7g}{gen:>16.7g}{delta:>14.7g}{error:>14}"


def _error(delta: float, exact: float) -> str:
    if not (math.isfinite(delta) and math.isfinite(exact) and exact > 0):
        return "-"
    return f"{100.0 * (delta / exact - 1.0):+.3g} %"


def _strict(value: Any) -> Any:
    """Numbers JSON has no token for: NaN becomes null, infinity the string "inf"."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value
