"""Answers under multiplicative noise w·(1 + s·ε), on the output head or on the whole network.

Multiplicative, because rescaling the units of a layer leaves the function and this noise alone;
noise of one size per matrix breaks the smallest units first, so a rescaled network would look
fragile.

Letters: N rows, S draws, C classes, D features.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from epigrok.monitor.tolerance import AnswersAtScale, ToleranceSettings
from epigrok.posteriors.calling import Forward, swapped_logits
from epigrok.posteriors.head import Head, HeadInputs
from epigrok.random_streams import normal, normal_of_streams, stream_key

HeadNoise = tuple[Float[Tensor, "S C D"], Float[Tensor, "S C"]]
"""Some draws of standard normal noise for the weights and the bias of a head."""
_NUMBERS_AT_A_TIME = 2**24
"""Drawn at once: 64 MB of them, and half a gigabyte while they are drawn."""


def head_answers(inputs: HeadInputs, settings: ToleranceSettings) -> AnswersAtScale:
    """Answers with noise on the head's weights and bias, from cached features.

    The logits are linear in the size of the noise, so each draw needs one product, whatever the
    number of sizes asked for.
    """
    logits_NC = inputs.logits()
    noise_SNC = logit_noise(inputs, settings)

    def answers(scale: float) -> Int[Tensor, "S N"]:
        return answers_of(logits_NC + scale * noise_SNC)

    return answers


def network_answers(
    model: nn.Module,
    inputs: Any,
    settings: ToleranceSettings,
    *,
    forward: Forward | None = None,
    only: tuple[str, ...] | None = None,
) -> AnswersAtScale:
    """Answers with noise on every floating-point parameter, or on those named in `only`."""
    noisy = NoisyNetwork(model, settings, only)

    def answers(scale: float) -> Int[Tensor, "S N"]:
        draws = range(settings.num_draws if scale else 1)
        rows = [answers_of(noisy.logits(scale, draw, inputs, forward)) for draw in draws]
        return torch.stack(rows).expand(settings.num_draws, -1)

    return answers


class NoisyNetwork:
    """A network with noise on every floating-point parameter, or on those named in `only`.

    Weights are swapped for each call, so the model is never changed. The caller has put it into
    evaluation mode.
    """

    def __init__(
        self, model: nn.Module, settings: ToleranceSettings, only: tuple[str, ...] | None = None
    ) -> None:
        self._model = model
        self._named = {
            name: values.detach()
            for name, values in model.named_parameters()
            if values.is_floating_point() and (only is None or name in only)
        }
        if not self._named:
            raise ValueError(f"the model has none of the parameters {only}")
        self._noise = _network_noise(self._named, settings)

    @torch.no_grad()
    def logits(
        self, scale: float, draw: int, inputs: Any, forward: Forward | None = None
    ) -> Float[Tensor, "N C"]:
        """Its logits under one draw of noise of this size; size 0 is no noise."""
        noise = self._noise(draw) if scale else ()
        noisy = {
            name: (self._named[name] * (1.0 + scale * added)).to(self._named[name].dtype)
            for name, added in noise
        }
        return swapped_logits(self._model, noisy, inputs, forward).flatten(0, -2)


def _network_noise(
    named: Mapping[str, Tensor], settings: ToleranceSettings
) -> Callable[[int], Iterable[tuple[str, Tensor]]]:
    """Noise for these parameters by the number of the draw; kept where the network is small."""
    groups = list(_drawn_together(named))

    def draw_noise(draw: int) -> Iterator[tuple[str, Tensor]]:
        # Group by group, so that a large network's noise never stands in memory whole.
        for group in groups:
            yield from _noise_of(group, settings, draw).items()

    num_numbers = sum(values.numel() for values in named.values())
    is_small = draws_at_a_time(settings, num_numbers) == settings.num_draws
    return cache(lambda draw: list(draw_noise(draw))) if is_small else draw_noise


def _drawn_together(named: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Groups of parameters whose noise is drawn at once; a very large one is alone."""
    group: dict[str, Tensor] = {}
    size = 0
    for name, values in named.items():
        if group and size + values.numel() > _NUMBERS_AT_A_TIME:
            yield group
            group, size = {}, 0
        group[name] = values
        size += values.numel()
    yield group


def _noise_of(
    group: Mapping[str, Tensor], settings: ToleranceSettings, draw: int
) -> dict[str, Tensor]:
    keys = [stream_key(settings.seed, f"tolerance:{name}") for name in group]
    first, *others = group.values()
    if not others:
        return {name: _in_blocks(keys[0], first, draw) for name in group}
    # All at once: a GPU would wait for the host most of the time.
    sizes = [values.numel() for values in group.values()]
    parts = normal_of_streams(keys, sizes, draw, first.device).split(sizes)
    return {
        name: part.view(values.shape).to(values.device)
        for (name, values), part in zip(group.items(), parts)
    }


def _in_blocks(key: int, values: Tensor, draw: int) -> Tensor:
    """Noise for one parameter: a draw takes eight times the memory of what it returns."""
    noise = torch.empty(values.numel(), device=values.device)
    for start in range(0, len(noise), _NUMBERS_AT_A_TIME):
        block = noise[start : start + _NUMBERS_AT_A_TIME]
        block.copy_(normal(key, (len(block),), draw, values.device, start))
    return noise.view(values.shape)


def row_tolerances(inputs: HeadInputs, settings: ToleranceSettings) -> Float[Tensor, " N"]:
    """For each row the noise on the head at which its answer changes, the median over draws."""
    # The lower median of an even number is one of the values: no mean with an infinite one. Not
    # `median`, which is refused on a GPU that may only do what is repeatable.
    return flip_scales(inputs, settings).quantile(0.5, dim=0, interpolation="lower")


def flip_scales(inputs: HeadInputs, settings: ToleranceSettings) -> Float[Tensor, "S N"]:
    """The noise on the head at which each row's answer changes, in each draw; inf where never."""
    return flip_scales_of(inputs.logits(), logit_noise_parts(inputs, settings))


def flip_scales_of(
    logits_NC: Float[Tensor, "N C"], noise: Iterable[Float[Tensor, "_ N C"]]
) -> Float[Tensor, "S N"]:
    """The size at which `noise` changes each row's answer, in each draw; inf where never.

    A row's answer is the highest of C lines in s. The line that is highest at s = 0 is left for
    good at its first crossing, so the crossing is exact and needs no search.
    """
    top_N1, answer_N1 = logits_NC.max(dim=1, keepdim=True)
    # One over the lead, so that the first crossing is one over the largest product; the answer
    # itself never overtakes itself.
    closeness_NC = (top_N1 - logits_NC).scatter(1, answer_N1, torch.inf).reciprocal()

    def flips(noise_SNC: Tensor) -> Tensor:
        own_SN1 = noise_SNC.gather(2, answer_N1.expand(len(noise_SNC), -1, -1))
        speed_SN = ((noise_SNC - own_SN1) * closeness_NC).amax(dim=2)
        return speed_SN.clamp_min(0.0).reciprocal()

    return torch.cat([flips(noise_SNC) for noise_SNC in noise])


def logit_noise(inputs: HeadInputs, settings: ToleranceSettings) -> Float[Tensor, "S N C"]:
    """What noise of size 1 adds to the logits, in each draw."""
    return torch.cat(list(logit_noise_parts(inputs, settings)))


def logit_noise_parts(
    inputs: HeadInputs, settings: ToleranceSettings, drawn: Iterable[HeadNoise] | None = None
) -> Iterator[Float[Tensor, "_ N C"]]:
    """The same, as many draws at a time as memory should hold; `drawn` saves drawing again."""
    weight_CD, bias_C = inputs.head.weight_CD, inputs.head.bias_C
    num_rows, num_classes = len(inputs.features_ND), len(weight_CD)
    if weight_CD.numel() > _NUMBERS_AT_A_TIME:
        yield from (_added_by_blocks(inputs, settings, d)[None] for d in range(settings.num_draws))
        return
    at_a_time = draws_at_a_time(settings, max(num_rows * num_classes, weight_CD.numel()))
    for noise_SCD, noise_SC in drawn or head_noise(inputs.head, settings, at_a_time):
        # One product for all draws: with few classes, one for each would take three times as long.
        changed_KD = (weight_CD * noise_SCD).flatten(0, 1)
        added_NK = inputs.features_ND @ changed_KD.T
        added_SNC = added_NK.view(num_rows, len(noise_SCD), num_classes).transpose(0, 1)
        yield added_SNC if bias_C is None else added_SNC + (bias_C * noise_SC)[:, None]


def _added_by_blocks(
    inputs: HeadInputs, settings: ToleranceSettings, draw: int
) -> Float[Tensor, "N C"]:
    """What one draw adds to the logits of a large head, some classes at a time."""
    head, features_ND = inputs.head, inputs.features_ND
    num_classes, width = head.weight_CD.shape
    of_weight, of_bias = _head_keys(settings)
    size = max(1, _NUMBERS_AT_A_TIME // width)
    parts = []
    for start in range(0, num_classes, size):
        weight = head.weight_CD[start : start + size]
        noise = normal(of_weight, tuple(weight.shape), draw, weight.device, start * width)
        parts.append(features_ND @ (weight * noise).T)
    added_NC = torch.cat(parts, dim=1)
    if head.bias_C is None:
        return added_NC
    return added_NC + head.bias_C * normal(of_bias, (num_classes,), draw, head.bias_C.device)


def draws_at_a_time(settings: ToleranceSettings, numbers_per_draw: int) -> int:
    """Draws whose numbers take at most 64 MB; at least one."""
    return min(settings.num_draws, max(1, _NUMBERS_AT_A_TIME // max(1, numbers_per_draw)))


def head_noise(head: Head, settings: ToleranceSettings, at_a_time: int) -> Iterator[HeadNoise]:
    """Noise for the weights and the bias of a head: a function of its shape and the settings."""
    num_classes, width = head.weight_CD.shape
    device = head.weight_CD.device
    of_weight, of_bias = _head_keys(settings)
    for start in range(0, settings.num_draws, at_a_time):
        draws = range(start, min(start + at_a_time, settings.num_draws))
        yield (
            torch.stack([normal(of_weight, (num_classes, width), d, device) for d in draws]),
            torch.stack([normal(of_bias, (num_classes,), d, device) for d in draws]),
        )


def _head_keys(settings: ToleranceSettings) -> list[int]:
    """The streams of the noise on the weights and on the bias."""
    return [stream_key(settings.seed, f"tolerance:head:{part}") for part in ("weight", "bias")]


def answers_of(logits: Float[Tensor, "*rows C"]) -> Int[Tensor, "*rows"]:
    """The most likely class of each row; -1 where the logits are not all finite."""
    is_finite = logits.isfinite().all(dim=-1)
    return logits.argmax(dim=-1).where(is_finite, -1)
