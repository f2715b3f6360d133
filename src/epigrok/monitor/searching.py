"""τ where every look at the answers is expensive: noise on the whole network.

A bracket is found with two draws. Then all draws answer at three sizes of the noise, and τ is read
off the line through them. `tolerance` would need fourteen more passes to find it. No answer is
asked for twice.

Letters: N rows, S draws of the noise.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import exp, isfinite, nan

import torch
from jaxtyping import Int
from torch import Tensor

from epigrok.monitor.tolerance import (
    HALF_STEP,
    AnswersAtScale,
    Tolerance,
    ToleranceSettings,
    agreement_slope,
    chance_corrected_agreement,
    log_tolerance,
    tolerance_at,
)

DrawAnswers = Callable[[float, int], Int[Tensor, " N"]]
"""The answers under noise of a given size, in one of the draws."""
_FEW = {"num_draws": 2, "num_halvings": 5}


def searched_tolerance(
    answers_in: DrawAnswers, num_classes: int, settings: ToleranceSettings
) -> Tolerance:
    """τ as `tolerance` has it, within a small part of its standard error.

    Args:
        answers_in: The answers by size and number of the draw.
        num_classes: Of the answers.
        settings: Those wanted.
    """
    few, remembered = replace(settings, **_FEW), cache(answers_in)
    answers = _answers_of_draws(remembered, settings.num_draws)
    clean_N = remembered(0.0, 0)
    middle = log_tolerance(_answers_of_draws(remembered, few.num_draws), clean_N, num_classes, few)
    if isinstance(middle, Tolerance):
        return middle

    for _ in range(8):
        found = tolerance_at(answers, clean_N, num_classes, middle)
        slope = agreement_slope(answers, clean_N, num_classes, middle)
        if found.reason is not None or not isfinite(slope) or slope == 0.0:
            return found
        kappa = chance_corrected_agreement(clean_N, answers(exp(middle)), num_classes).mean()
        shift = (float(kappa) - settings.level) / -slope
        # Between the outer two of the three sizes the line is trusted.
        if abs(shift) <= HALF_STEP:
            return replace(found, value=exp(middle + shift))
        middle += max(-1.0, min(1.0, shift))
    return Tolerance(value=nan, reason="the noise at which answers change cannot be measured")


def _answers_of_draws(answers_in: DrawAnswers, num_draws: int) -> AnswersAtScale:
    def answers(scale: float) -> Int[Tensor, "S N"]:
        return torch.stack([answers_in(scale, draw) for draw in range(num_draws)])

    return answers
