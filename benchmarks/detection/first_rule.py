"""The first rule, as it was frozen before the old held-out kinds were run; kept to compare.

The head alone decides, at fixed thresholds with hysteresis; chance is one over the number of
classes. `epigrok/monitor/states.py` has the rule that took its place.
"""

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

GENERALISED_FROM, GENERALISED_UNTIL, MEMORISING_BELOW = 0.5, 0.33, 0.33
FITTED_ACCURACY, FIT_MAY_FALL_BY, LARGEST_LOG_ERROR, NUM_CONFIRMATIONS = 0.95, 0.15, 0.5, 2


class FirstReading(NamedTuple):
    ratio: float
    log_standard_error: float
    train_accuracy: float
    num_classes: int


def first_rule_states(readings: Iterable[FirstReading]) -> tuple[list[str], list[bool]]:
    """The state after each reading, and whether the reading could be read."""
    state, pending, num_pending, has_generalised = "fitting", "", 0, False
    states, readable = [], []
    for reading in readings:
        chance = 1.0 / reading.num_classes
        fit = (reading.train_accuracy - chance) / (1.0 - chance)
        needed = FITTED_ACCURACY - (FIT_MAY_FALL_BY if state != "fitting" else 0.0)
        is_known = isfinite(reading.ratio) and reading.log_standard_error <= LARGEST_LOG_ERROR
        is_fitted = fit >= needed
        wanted = state
        if is_fitted and is_known:
            wanted = _wanted(state, reading.ratio, has_generalised)
        num_pending = 0 if wanted == state else num_pending + 1 if wanted == pending else 1
        pending = wanted
        if num_pending == NUM_CONFIRMATIONS:
            state, num_pending = wanted, 0
            has_generalised = has_generalised or state == "generalised"
        states.append(state)
        readable.append(is_known and (is_fitted or state == "fitting"))
    return states, readable


def _wanted(state: str, ratio: float, has_generalised: bool) -> str:
    if ratio >= (GENERALISED_UNTIL if state == "generalised" else GENERALISED_FROM):
        return "generalised"
    if has_generalised:
        return "lost"
    return "memorising" if ratio < MEMORISING_BELOW else "generalising"
