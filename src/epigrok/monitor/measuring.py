"""What one look measures of each set, with noise on the head or on the whole network.

All sets of a look share the draws of the noise. Entropies are in nats.

Letters: N rows (predictions) of all sets together, S draws of the noise, C classes, D features.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, nan, sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.monitor.noise import (
    HeadNoise,
    NoisyNetwork,
    answers_of,
    draws_at_a_time,
    flip_scales_of,
    head_noise,
    logit_noise_parts,
)
from epigrok.monitor.quantile import flip_tolerance
from epigrok.monitor.sets.set_rows import ModelCall, SetRows
from epigrok.monitor.tolerance import Tolerance, ToleranceSettings
from epigrok.posteriors.calling import refuse_probabilities
from epigrok.posteriors.head import Head, HeadInputs

SEEN = "seen"
"""The set that the others are compared with."""


@dataclass(frozen=True)
class Mean:
    """A mean over rows with its standard error; NaN where there is nothing to average."""

    value: float = nan
    standard_error: float = nan

    @classmethod
    def of(cls, values_N: Float[Tensor, " N"]) -> "Mean":
        """Of these values, taken as independent."""
        if not len(values_N):
            return cls()
        values_N = values_N.double()
        spread = float(values_N.std()) if len(values_N) > 1 else nan
        return cls(float(values_N.mean()), spread / sqrt(len(values_N)))


@dataclass(frozen=True, kw_only=True)
class SetMeasure:
    """One set at one look."""

    num_rows: int
    tolerance: Tolerance
    chance: float
    """Σ_c p(c)² with the shares p of the network's answers."""
    calibrated_epistemic: Mean
    """Mutual information under noise of size τ(seen)."""
    entropy: Mean
    confidence: Mean
    """Highest probability."""
    answers: tuple[int, ...] = ()
    """The network's own; -1 where its output is not finite."""
    posterior_epistemic: Mean = Mean()
    """Mutual information under a posterior that was passed."""
    predictability: Mean = Mean()
    """How well the answers follow from those to the seen inputs: see `by_heart`."""
    seen_predictability: Mean = Mean()
    """How well seen answers follow from each other, each counted as often as this set has it."""


class HeadDraws:
    """The noise of every look: drawn once and kept if the head is small."""

    def __init__(self, settings: ToleranceSettings) -> None:
        self._settings = settings
        self._kept: list[HeadNoise] = []

    def of(self, head: Head) -> list[HeadNoise] | None:
        """The draws for this head; None if they are too large to keep."""
        weight_CD, num_draws = head.weight_CD, self._settings.num_draws
        if draws_at_a_time(self._settings, weight_CD.numel()) < num_draws:
            return None
        if not self._kept or (self._kept[0][0].shape[1:], self._kept[0][0].device) != (
            weight_CD.shape,
            weight_CD.device,
        ):
            self._kept = list(head_noise(head, self._settings, num_draws))
        return self._kept


@torch.no_grad()
def measure(
    inputs: Mapping[str, HeadInputs], settings: ToleranceSettings, draws: HeadDraws | None = None
) -> dict[str, SetMeasure]:
    """Measure every set with noise on the head; the set called `SEEN` gives the noise's size."""
    features_ND = torch.cat([part.features_ND for part in inputs.values()])
    together = HeadInputs(features_ND=features_ND, head=inputs[SEEN].head)
    lengths = [len(part.features_ND) for part in inputs.values()]
    logits_NC, noise = together.logits(), _LogitNoise(together, settings, draws)
    answers_N, flips_SN = answers_of(logits_NC), flip_scales_of(logits_NC, noise)
    answers = dict(zip(inputs, answers_N.split(lengths)))
    tolerances = {
        name: flip_tolerance(answers[name], flips, settings)
        for name, flips in zip(inputs, flips_SN.split(lengths, dim=1))
    }
    scale = tolerances[SEEN].value
    epistemic_N = (
        mutual_information(logits_NC + scale * added for added in noise)
        if isfinite(scale)
        else torch.full_like(logits_NC[:, 0], nan)
    )
    of_sets = zip(inputs, logits_NC.split(lengths), epistemic_N.split(lengths))
    return {
        name: _set_measure(logits, answers[name], tolerances[name], epistemic)
        for name, logits, epistemic in of_sets
    }


@torch.no_grad()
def measure_network(
    sets: Mapping[str, SetRows], call: ModelCall, settings: ToleranceSettings
) -> dict[str, SetMeasure]:
    """The same with noise on the whole network, for networks without a linear output layer."""
    tolerances: dict[str, Tolerance] = {}
    logits: dict[str, Tensor] = {}
    noisy = NoisyNetwork(call.model, settings)
    for name, rows in sets.items():
        logits[name] = rows.own_logits(call)
        refuse_probabilities(logits[name])
        tolerances[name] = rows.network_tolerance(call, noisy, settings)
    scale = tolerances[SEEN].value

    def epistemic(name: str) -> Tensor:
        if not isfinite(scale):
            return torch.full_like(logits[name][:, 0], nan)
        return mutual_information(
            sets[name].noisy_logits(call, noisy, scale, draw)[None].float()
            for draw in range(settings.num_draws)
        )

    return {
        name: _set_measure(
            logits[name].float(), answers_of(logits[name]), tolerances[name], epistemic(name)
        )
        for name in sets
    }


@torch.no_grad()
def measure_without_noise(
    sets: Mapping[str, SetRows], call: ModelCall, reason: str
) -> dict[str, SetMeasure]:
    """The network's own predictions, and why its tolerance cannot be read."""
    unreadable = Tolerance(value=nan, reason=reason)
    found = {}
    for name, rows in sets.items():
        logits_NC = rows.own_logits(call).float()
        unknown_N = torch.full_like(logits_NC[:, 0], nan)
        found[name] = _set_measure(logits_NC, answers_of(logits_NC), unreadable, unknown_N)
    return found


def _set_measure(
    logits_NC: Float[Tensor, "N C"],
    answers_N: Int[Tensor, " N"],
    tolerance: Tolerance,
    epistemic_N: Float[Tensor, " N"],
) -> SetMeasure:
    probs_NC, entropy_N = _predictions(logits_NC)
    return SetMeasure(
        num_rows=len(logits_NC),
        tolerance=tolerance,
        chance=_chance(answers_N),
        answers=tuple(answers_N.tolist()),
        calibrated_epistemic=Mean.of(epistemic_N),
        entropy=Mean.of(entropy_N),
        confidence=Mean.of(probs_NC.amax(dim=1)),
    )


def mutual_information(logits: Iterable[Float[Tensor, "_ N C"]]) -> Float[Tensor, " N"]:
    """Entropy of the mean prediction less the mean entropy, over all samples; to 1e-6 nats.

    In float32, unlike `epigrok.decompose`: under noise that changes one answer in ten it is large.
    """
    num_samples, sum_NC, entropy_N = 0, *torch.zeros(2, device="cpu")
    for logits_SNC in logits:
        probs_SNC, entropy_SN = _predictions(logits_SNC)
        sum_NC = sum_NC + probs_SNC.sum(dim=0)
        entropy_N = entropy_N + entropy_SN.sum(dim=0)
        num_samples += len(logits_SNC)
    mean_NC = sum_NC / num_samples
    total_N = -torch.xlogy(mean_NC, mean_NC).sum(dim=1)
    return (total_N - entropy_N / num_samples).clamp_min(0.0)


def _predictions(logits: Float[Tensor, "*N C"]) -> tuple[Tensor, Tensor]:
    """Probabilities and their entropy, log Z - Σ p·z with z the logits below the highest."""
    # Numbers below the smallest normal one would slow the exponential down by a factor of ten.
    below = (logits - logits.amax(dim=-1, keepdim=True)).clamp_min_(-80.0)
    probs = below.exp()
    normaliser = probs.sum(dim=-1, keepdim=True)
    probs.div_(normaliser)
    return probs, normaliser[..., 0].log() - below.mul_(probs).sum(dim=-1)


class _LogitNoise:
    """What each draw adds to the logits, to go through several times; kept if that is small."""

    def __init__(
        self, inputs: HeadInputs, settings: ToleranceSettings, draws: HeadDraws | None
    ) -> None:
        self._inputs, self._settings = inputs, settings
        self._drawn = None if draws is None else draws.of(inputs.head)
        numbers_per_draw = len(inputs.features_ND) * len(inputs.head.weight_CD)
        is_small = draws_at_a_time(settings, numbers_per_draw) == settings.num_draws
        self._kept = list(self._parts()) if is_small else None

    def _parts(self) -> Iterator[Tensor]:
        return logit_noise_parts(self._inputs, self._settings, self._drawn)

    def __iter__(self) -> Iterator[Tensor]:
        return self._parts() if self._kept is None else iter(self._kept)


def _chance(answers_N: Int[Tensor, " N"]) -> float:
    """Of the answers that are known; zero if none is, and then the tolerance says why."""
    known_N = answers_N[answers_N >= 0]
    return float((torch.bincount(known_N) / max(1, len(known_N))).square().sum())
