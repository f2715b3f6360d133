r"""Noise tolerance at the head as an exact quantile, without a search.

Chance is taken from the clean answers alone, p_e = Σ_c p(c)²: agreement then falls with every
answer that flips and with nothing else, and κ = level is reached when a known share of answers has
flipped. τ is that quantile of the noise at which single answers flip. In the benchmark
(`docs/results/detection`) it does as well as the search in `tolerance.py`, at a fraction of the
cost.

Letters: N rows (inputs), S draws of the noise, C classes.
"""

from math import exp

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.monitor.noise import answers_of, flip_scales
from epigrok.monitor.tolerance import (
    HALF_STEP,
    Tolerance,
    ToleranceSettings,
    tolerance_with_errors,
    why_unreadable,
)
from epigrok.posteriors.head import HeadInputs


def head_tolerance(inputs: HeadInputs, settings: ToleranceSettings) -> Tolerance:
    """τ of these inputs under noise on the head."""
    answers_N = answers_of(inputs.logits())
    return flip_tolerance(answers_N, flip_scales(inputs, settings), settings)


def flip_tolerance(
    answers_N: Int[Tensor, " N"], flips_SN: Float[Tensor, "S N"], settings: ToleranceSettings
) -> Tolerance:
    """τ of inputs with these answers, each of which changes at noise `flips_SN`."""
    num_classes = int(answers_N.max()) + 1 if len(answers_N) else 1
    reason = why_unreadable(answers_N, num_classes, settings)
    if reason is not None:
        return Tolerance(value=torch.nan, reason=reason)
    share_C = torch.bincount(answers_N, minlength=num_classes).double() / len(answers_N)
    free = 1.0 - float(share_C.square().sum())
    # κ = 1 - (flipped share)/free, so this many of all answers may flip.
    num_flips = int((1.0 - settings.level) * free * flips_SN.numel())
    # Sorted, because `kthvalue` is refused on a GPU that may only do what is repeatable.
    value = float(flips_SN.flatten().sort().values[num_flips])
    if value < settings.lowest:
        return Tolerance(
            value=torch.nan,
            reason=f"answers change at noise {settings.lowest:g} already; is the model random?",
        )
    if value >= settings.highest:
        return Tolerance(value=torch.inf, reason=f"answers survive noise {settings.highest:g}")
    above, below = (
        float((flips_SN > value * exp(step)).double().mean()) for step in (HALF_STEP, -HALF_STEP)
    )
    slope = (above - below) / free / (2.0 * HALF_STEP)
    holds_SN = (flips_SN > value).double()
    observed_S1 = holds_SN.mean(dim=1, keepdim=True)
    # The influence of a row on κ: through its own answer, and through the shares that set chance.
    through_chance_N = 2.0 * (share_C[answers_N] - (1.0 - free))
    influence_SN = (holds_SN - observed_S1) / free
    influence_SN -= (1.0 - observed_S1) / free**2 * through_chance_N
    return tolerance_with_errors(value, slope, influence_SN, observed_S1[:, 0] / free)
