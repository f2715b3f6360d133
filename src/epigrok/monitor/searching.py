"""τ where every look at the answers is expensive: noise on the whole network.

A bracket is found with two draws. Then all draws answer at three sizes of the noise, and τ is read
off the line through them, which `tolerance` would find by fourteen more.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import exp, isfinite, log, nan

from epigrok.monitor.tolerance import (
    Answers,
    Tolerance,
    ToleranceSettings,
    chance_corrected_agreement,
    tolerance,
    tolerance_at,
)

_FEW = {"num_draws": 2, "num_halvings": 5}
_FARTHEST = 0.3
"""Distance in log s from the middle one of the three sizes up to which the line is trusted."""


def searched_tolerance(
    answers_with: Callable[[ToleranceSettings], Answers],
    num_classes: int,
    settings: ToleranceSettings,
) -> Tolerance:
    """τ as `tolerance` has it, within a small part of its standard error.

    Args:
        answers_with: Makes the answers for settings with more or fewer draws.
        num_classes: Of the answers.
        settings: Those wanted.
    """
    few = replace(settings, **_FEW)
    rough = tolerance(answers_with(few), num_classes, few)
    if rough.reason is not None:
        return rough
    # The three sizes are asked for twice: for the errors and for the line.
    answers = cache(answers_with(settings))
    clean_N = answers(0.0)[0]

    def kappa(log_scale: float) -> float:
        noisy_SN = answers(exp(log_scale))
        return float(chance_corrected_agreement(clean_N, noisy_SN, num_classes).mean())

    middle = log(rough.value)
    for _ in range(8):
        found = tolerance_at(answers, clean_N, num_classes, middle)
        slope = (kappa(middle + _FARTHEST) - kappa(middle - _FARTHEST)) / (2.0 * _FARTHEST)
        if found.reason is not None or not isfinite(slope) or slope == 0.0:
            return found
        shift = (kappa(middle) - settings.level) / -slope
        if abs(shift) <= _FARTHEST:
            return replace(found, value=exp(middle + shift))
        middle += max(-1.0, min(1.0, shift))
    return Tolerance(value=nan, reason="the noise at which answers change cannot be measured")
