"""Read status.json and provenance.json, which anybody may have written, without trusting them.

Both only inform. So an entry of the wrong type is left out; it never stops a command.
"""

from collections.abc import Callable
from datetime import datetime
from math import isfinite
from typing import Any

from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL

_LATEST = 1e11
"""Seconds since 1970; calendars end there."""


def clean_status(values: Any) -> dict[str, Any]:
    """The entries of a status that have the right type."""
    if not isinstance(values, dict):
        return {}
    return {name: value for name, value in values.items() if _STATUS.get(name, _is_any)(value)}


def clean_provenance(values: Any) -> dict[str, Any]:
    """The entries of a provenance that have the right type; nothing without a list of processes."""
    processes = values.get("processes") if isinstance(values, dict) else None
    if not isinstance(processes, list) or not all(isinstance(p, dict) for p in processes):
        return {}
    if not processes:
        return {}
    clean = [
        {name: value for name, value in process.items() if _PROCESS.get(name, _is_any)(value)}
        for process in processes
    ]
    kept = {name: value for name, value in values.items() if _PROCESS.get(name, _is_any)(value)}
    return kept | {"processes": clean}


def is_step(value: Any) -> bool:
    """Whether a value can be a number of steps."""
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, float) or type(value) is int
    return is_real and abs(value) < 1e300 and isfinite(value)


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 <= value < _LATEST


def _is_speed(value: Any) -> bool:
    return value is None or (_is_number(value) and value >= 0)


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_date(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


def _is_versions(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(found, str) for found in value.values())


def _is_any(value: Any) -> bool:
    del value
    return True


_STATUS: dict[str, Callable[[Any], bool]] = {
    "state": _is_text,
    "reason": _is_text,
    "step": is_step,
    "num_steps": is_step,
    "updated": _is_time,
    "steps_per_second": _is_speed,
    ACCURACY_FINAL: _is_scores,
    EPISTEMIC_FINAL: _is_scores,
}
_PROCESS: dict[str, Callable[[Any], bool]] = {
    "started": _is_date,
    "versions": _is_versions,
    **dict.fromkeys(("epigrok", "commit", "python", "platform", "device"), _is_text),
}
