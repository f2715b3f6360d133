r"""Noise tolerance: how much noise on the weights leaves a network's own answers as they are.

For a set of unlabelled inputs

    τ(set) = the s at which noise of relative size s on the weights, w·(1 + s·ε), brings the
             agreement with the network's own answers down to `level`
    ratio  = τ(watched) / τ(seen)

A rule that covers both sets breaks at the same noise on both, so the ratio is near one. What was
memorised holds because the network was trained to hold it, and everything else flips at once.

Agreement is Cohen's κ = (p_o - p_e)/(1 - p_e): p_o is the share of equal answers, and
p_e = Σ_c p(c) q(c) what chance gives with the clean answers' shares p and the noisy ones' q. Plain
agreement calls a network that nearly always gives one answer robust. κ is averaged over draws; the
same draws serve every s, so that κ falls smoothly in s, and serve both sets of a ratio.

Letters: N rows (inputs), S draws of the noise, C classes, D features.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, isfinite, log, nan, sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

AnswersAtScale = Callable[[float], Int[Tensor, "S N"]]
"""The answers to N inputs under each of S draws of noise of a given size; size 0 is no noise."""
HALF_STEP = 0.3
"""Distance in log s from τ at which κ is read for its slope, so across a factor of 1.8: over less,
single rows would decide it."""


@dataclass(frozen=True, kw_only=True)
class ToleranceSettings:
    """How τ is measured. The benchmark in `benchmarks/detection` compares other choices."""

    level: float = 0.9
    """The κ down to which noise may take the agreement."""
    num_draws: int = 8
    lowest: float = 1e-4
    """Where the search for τ begins."""
    highest: float = 1e2
    """Where it ends; a τ that lies at either end cannot be read."""
    num_halvings: int = 12
    """Steps of the search; twelve leave a factor of 1.003 between its ends."""
    fewest_rows: int = 64
    fewest_minority_rows: int = 8
    """Rows whose answer is not the most common one; κ rests on them."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")
        if not 0.0 < self.lowest < self.highest:
            raise ValueError(f"no noise lies between {self.lowest} and {self.highest}")
        if self.num_draws < 2:
            raise ValueError(f"a standard error needs two draws or more, got {self.num_draws}")


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """τ of one set; `reason` says why it is unreadable, and is None where it can be read."""

    value: float
    reason: str | None = None
    row_variance: float = nan
    """Variance of log τ from the choice of rows."""
    draw_effects_S: Float[Tensor, " S"] | None = None
    """What each draw contributes to log τ; its mean is zero."""

    @property
    def log_standard_error(self) -> float:
        """Standard error of log τ, from the choice of rows and of draws."""
        if self.draw_effects_S is None:
            return nan
        return sqrt(self.row_variance + _variance_of_mean(self.draw_effects_S))


@dataclass(frozen=True, kw_only=True)
class ToleranceRatio:
    """τ(watched)/τ(seen), with the standard error of its logarithm."""

    value: float
    log_standard_error: float
    reason: str | None = None

    def interval(self, deviations: float = 2.0) -> tuple[float, float]:
        """The ratio, `deviations` standard errors down and up."""
        spread = exp(deviations * self.log_standard_error)
        return self.value / spread, self.value * spread


def tolerance(answers: AnswersAtScale, num_classes: int, settings: ToleranceSettings) -> Tolerance:
    """τ of the inputs that `answers` answers, by bisection in log s."""
    clean_N = answers(0.0)[0]
    found = log_tolerance(answers, clean_N, num_classes, settings)
    if isinstance(found, Tolerance):
        return found
    return tolerance_at(answers, clean_N, num_classes, found)


def log_tolerance(
    answers: AnswersAtScale,
    clean_N: Int[Tensor, " N"],
    num_classes: int,
    settings: ToleranceSettings,
) -> float | Tolerance:
    """The logarithm of τ by bisection; where τ is unreadable, a `Tolerance` that says why."""
    reason = why_unreadable(clean_N, num_classes, settings)
    if reason is not None:
        return Tolerance(value=nan, reason=reason)

    def holds(scale: float) -> bool:
        kappa_S = chance_corrected_agreement(clean_N, answers(scale), num_classes)
        return float(kappa_S.mean()) >= settings.level

    lowest, highest = low, high = log(settings.lowest), log(settings.highest)
    for _ in range(settings.num_halvings):
        middle = (low + high) / 2
        if holds(exp(middle)):
            low = middle
        else:
            high = middle
    # An end is asked only where halving never left it: a size in between has answered for it.
    if low == lowest and not holds(settings.lowest):
        return Tolerance(
            value=nan,
            reason=f"answers change at noise {settings.lowest:g} already; is the model random?",
        )
    if high == highest and holds(settings.highest):
        return Tolerance(value=inf, reason=f"answers survive noise {settings.highest:g}")
    return (low + high) / 2


def tolerance_ratio(watched: Tolerance, seen: Tolerance) -> ToleranceRatio:
    """τ(watched)/τ(seen). Effects of draws that both share cancel in its standard error."""
    for name, part in (("seen", seen), ("watched", watched)):
        if part.reason is not None:
            reason = f"{name} inputs: {part.reason}"
            return ToleranceRatio(value=nan, log_standard_error=nan, reason=reason)
    assert watched.draw_effects_S is not None
    assert seen.draw_effects_S is not None
    of_draws = _variance_of_mean(watched.draw_effects_S - seen.draw_effects_S)
    return ToleranceRatio(
        value=watched.value / seen.value,
        log_standard_error=sqrt(watched.row_variance + seen.row_variance + of_draws),
    )


def chance_corrected_agreement(
    clean_N: Int[Tensor, " N"], noisy_SN: Int[Tensor, "S N"], num_classes: int
) -> Float[Tensor, " S"]:
    """Cohen's κ between the clean answers and those of each draw; 1 where chance alone gives 1."""
    observed_S, chance_S = _observed_and_chance(clean_N, noisy_SN, num_classes)
    kappa_S = (observed_S - chance_S) / (1.0 - chance_S)
    return torch.where(chance_S < 1.0, kappa_S, torch.ones_like(kappa_S))


def _observed_and_chance(
    clean_N: Tensor, noisy_SN: Tensor, num_classes: int
) -> tuple[Tensor, Tensor]:
    clean_share_C = _shares(clean_N[None], num_classes)[0]
    observed_S = (noisy_SN == clean_N).double().mean(dim=1)
    return observed_S, _shares(noisy_SN, num_classes) @ clean_share_C


def _shares(answers_SN: Tensor, num_classes: int) -> Float[Tensor, "S classes"]:
    """How often each class is the answer; "not finite", which is -1, counts as one more class."""
    counts_SC = torch.zeros(
        (len(answers_SN), num_classes + 1), dtype=torch.float64, device=answers_SN.device
    )
    ones_SN = torch.ones_like(answers_SN, dtype=torch.float64)
    return counts_SC.scatter_add_(1, answers_SN % (num_classes + 1), ones_SN) / answers_SN.shape[1]


def why_unreadable(clean_N: Tensor, num_classes: int, settings: ToleranceSettings) -> str | None:
    """Why τ of inputs with these answers (-1: not finite) says nothing; None if it does."""
    if len(clean_N) < settings.fewest_rows:
        return f"{len(clean_N)} rows, {settings.fewest_rows} are needed"
    if bool((clean_N < 0).any()):
        return "outputs are not finite"
    num_minority = len(clean_N) - int(torch.bincount(clean_N, minlength=num_classes).max())
    if num_minority < settings.fewest_minority_rows:
        return f"{len(clean_N) - num_minority} of {len(clean_N)} rows get the same answer"
    return None


def tolerance_at(
    answers: AnswersAtScale, clean_N: Tensor, num_classes: int, log_scale: float
) -> Tolerance:
    r"""τ = exp(`log_scale`) with the variance of its logarithm.

    By the delta method, Var(log τ) = Var(κ)/(dκ/dlog s)².

    The influence of row n in draw s on κ is
    (a - p_o)/(1 - p_e) - (1 - p_o)/(1 - p_e)²·(q(clean answer) + p(noisy answer) - 2 p_e).
    """
    noisy_SN = answers(exp(log_scale))
    observed_S, chance_S = _observed_and_chance(clean_N, noisy_SN, num_classes)
    clean_share_C = _shares(clean_N[None], num_classes)[0]
    noisy_share_SC = _shares(noisy_SN, num_classes)
    free_S1, observed_S1 = (1.0 - chance_S)[:, None], observed_S[:, None]
    chance_of_row_SN = noisy_share_SC[:, clean_N] + clean_share_C[noisy_SN]
    influence_SN = ((noisy_SN == clean_N).double() - observed_S1) / free_S1
    influence_SN -= (1.0 - observed_S1) / free_S1**2 * (chance_of_row_SN - 2.0 * chance_S[:, None])
    kappa_S = (observed_S - chance_S) / (1.0 - chance_S)
    slope = agreement_slope(answers, clean_N, num_classes, log_scale)
    return tolerance_with_errors(exp(log_scale), slope, influence_SN, kappa_S)


def tolerance_with_errors(
    value: float, slope: float, influence_SN: Float[Tensor, "S N"], kappa_S: Float[Tensor, " S"]
) -> Tolerance:
    """τ = `value` with the variances of its logarithm.

    Args:
        value: τ itself.
        slope: dκ/dlog s there.
        influence_SN: What each row contributes to κ in each draw.
        kappa_S: κ in each draw, up to a constant.
    """
    if not (isfinite(slope) and slope < 0.0):
        return Tolerance(value=nan, reason="more noise does not change more answers")
    # Rows differ, draws differ, and what neither explains must not be counted with both.
    residual_SN = influence_SN - influence_SN.mean(dim=0)
    num_draws, num_rows = residual_SN.shape
    of_rows = float(influence_SN.mean(dim=0).var()) / num_rows
    of_residual = float(residual_SN.square().sum()) / (num_draws - 1) / num_rows
    of_rows = max(of_rows - of_residual / (num_rows * num_draws), 0.25 * of_rows)
    return Tolerance(
        value=value,
        row_variance=of_rows / slope**2,
        draw_effects_S=(kappa_S - kappa_S.mean()) / -slope,
    )


def agreement_slope(
    answers: AnswersAtScale, clean_N: Tensor, num_classes: int, log_scale: float
) -> float:
    """dκ/dlog s at s = exp(`log_scale`)."""
    above, below = (
        float(chance_corrected_agreement(clean_N, answers(exp(at)), num_classes).mean())
        for at in (log_scale + HALF_STEP, log_scale - HALF_STEP)
    )
    return (above - below) / (2.0 * HALF_STEP)


def _variance_of_mean(values_S: Tensor) -> float:
    return float(values_S.double().var()) / len(values_S)
