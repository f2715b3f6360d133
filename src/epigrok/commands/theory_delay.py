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
    event_levels,
)
from epigrok.theory.excess_risk import is_never_crossed
from epigrok.theory.validity import ValidityReport, validity_report

_EVENTS = {"peak": "EU peak (risk = 1.0991 eps)", "grok": "accuracy threshold (risk = eps/8)"}
_EXACT_TIMES = {f"{what}_{event}" for what in ("s_gen", "delta_s") for event in _EVENTS}
_BEYOND = "beyond 1e308"
_ROWS = {
    "": "exact",
    "lambert_": "Lambert W",
    "edge_newton_1_": "edge-Newton, 1 step",
    "edge_newton_3_": "edge-Newton, 3 steps",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DelayRequest:
    """Print exact peak and threshold times, every approximation, bounds and a validity report.

    Times are s = 2nt/sigma^2. Without --json a table; with it one JSON object, where null is a time
    that does not exist (a risk that starts below the level, a formula outside its range), "inf" a
    level that is never reached or a bound without end, and "beyond 1e308" a time that is finite but
    later than any float.
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
    infinite = infinite_numbers(*parameters)
    if request.json:
        validity = dataclasses.asdict(report) | {"all_hold": report.all_hold}
        content = {
            "lam": request.lam,
            "gamma": request.gamma,
            "eps_over_C0": request.eps_over_c0,
            **times,
            "validity": validity,
        }
        print(json.dumps(_strict(content, infinite), indent=2, allow_nan=False))
    else:
        print(delay_text(request, times, report, infinite))


def delay_numbers(lam: float, gamma: float, eps_over_C0: float) -> dict[str, float]:
    """Every time and delay by name: exact, by formula, and bounds.

    `s_emp_peak` is exact, `s_emp_lambert_peak` a formula's; likewise `s_gen_`, `delta_s_` and
    `_grok`. `delta_s_paper` is the leading-order delay, the same for both events.
    """
    numbers = _named(crossings(lam, gamma, eps_over_C0), "")
    numbers["delta_s_paper"] = float(delay_leading(lam, gamma))
    for event, level in zip(_EVENTS, event_levels(eps_over_C0)):
        bounds = delay_bounds(level, lam, gamma)
        numbers[f"delta_s_lower_{event}"] = float(bounds.lower)
        numbers[f"delta_s_upper_{event}"] = float(bounds.upper)
        numbers[f"s_gen_atom_{event}"] = float(crossing_atom(level, lam, gamma))
    formulas = {
        "lambert": crossings_lambert(lam, gamma, eps_over_C0),
        "edge_newton_1": crossings_edge_newton(lam, gamma, eps_over_C0, steps=1),
        "edge_newton_3": crossings_edge_newton(lam, gamma, eps_over_C0, steps=3),
    }
    for formula, times in formulas.items():
        numbers |= _named(times, f"{formula}_")
    return numbers


def infinite_numbers(lam: float, gamma: float, eps_over_C0: float) -> frozenset[str]:
    """Names of the numbers that are infinite, and not only too large for a float."""
    names = set()
    for event, level in zip(_EVENTS, event_levels(eps_over_C0)):
        if is_never_crossed(level, "gen", lam, gamma):
            names |= {f"s_gen_{event}", f"delta_s_{event}", f"s_gen_atom_{event}"}
        if gamma == 0.0 and lam >= 1.0:
            names.add(f"delta_s_upper_{event}")
        if lam == 1.0:
            names |= {f"s_gen_lambert_{event}", f"delta_s_lambert_{event}"}
    if "s_gen_peak" in names:
        names |= {"nu_minus_s_gen", "peak_is_reached"}
    if lam == 1.0:
        names |= {"gamma_over_nu_minus", "uniform_weights"}
    return frozenset(names)


def delay_text(
    request: DelayRequest,
    numbers: dict[str, float],
    report: ValidityReport,
    infinite: frozenset[str],
) -> str:
    """The report for people."""
    lines = [
        f"lambda = {request.lam:g}, gamma = {request.gamma:g}, eps/C0 = {request.eps_over_c0:g}; "
        "times are s = 2nt/sigma^2",
    ]
    heading = f"{'':<24}{'training':>14}{'generalisation':>16}{'delay':>14}{'error':>14}"
    shown = {name: _shown(name, value, infinite) for name, value in numbers.items()}
    for event, title in _EVENTS.items():
        exact = numbers[f"delta_s_{event}"]
        lines += ["", title, heading]
        for prefix, name in _ROWS.items():
            emp, gen, delta = (f"{x}_{prefix}{event}" for x in ("s_emp", "s_gen", "delta_s"))
            error = "" if name == "exact" else _error(numbers[delta], exact)
            lines.append(
                f"  {name:<22}{shown[emp]:>14}{shown[gen]:>16}{shown[delta]:>14}{error:>14}"
            )
        ends = {"leading order (paper)": "delta_s_paper"}
        ends |= {f"{end} bound": f"delta_s_{end}_{event}" for end in ("lower", "upper")}
        for title_of_end, name in ends.items():
            error = _error(numbers[name], exact)
            lines.append(f"  {title_of_end:<52}{shown[name]:>14}{error:>14}")
        if request.lam > 1.0:
            lines.append(f"  {'atom alone (lambda > 1)':<36}{shown[f's_gen_atom_{event}']:>16}")
    lines += ["", "validity"]
    for item in report.assumptions:
        verdict = {True: "holds", False: "FAILS", None: "unknown"}[item.holds]
        value = "-" if item.value is None else _shown(item.name, item.value, infinite, 4)
        lines.append(f"  {verdict:<9}{item.name:<25}{item.requirement:<26}value: {value}")
        if item.holds is False:
            lines.append(f"           {item.meaning.removeprefix('otherwise ')}")
    return "\n".join(lines)


def _named(times: Crossings, prefix: str) -> dict[str, float]:
    """Times by name, the prefix before the event: `s_emp_peak` becomes `s_emp_lambert_peak`."""
    parts = {field: field.rpartition("_") for field in times._fields}
    return {
        f"{parts[field][0]}_{prefix}{parts[field][2]}": float(value)
        for field, value in times._asdict().items()
    }


def _shown(name: str, value: float, infinite: frozenset[str], digits: int = 7) -> str:
    if math.isinf(value):
        return _BEYOND if name not in infinite else "never" if name in _EXACT_TIMES else "inf"
    return f"{value:.{digits}g}"


def _error(delta: float, exact: float) -> str:
    if not (math.isfinite(delta) and math.isfinite(exact) and exact > 0):
        return "-"
    return f"{100.0 * (delta / exact - 1.0):+.3g} %"


def _strict(value: Any, infinite: frozenset[str], name: str = "") -> Any:
    """Replace numbers that JSON cannot hold: NaN by null, infinity by one of two words."""
    if isinstance(value, dict):
        # The value of an assumption is looked up under the assumption's name.
        names = {key: str(value.get("name", key)) if key == "value" else key for key in value}
        return {key: _strict(item, infinite, names[key]) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item, infinite, name) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if name in infinite else _BEYOND)
    return value
