"""Answers under multiplicative noise w·(1 + s·ε), on the output head or on the whole network.

Multiplicative, because rescaling the units of a layer leaves the function and this noise alone;
noise of one size per matrix breaks the smallest units first, so a rescaled network would look
fragile.

Letters: N rows, S draws, C classes, D features.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from epigrok.monitor.head import Forward, HeadInputs
from epigrok.monitor.tolerance import Answers, ToleranceSettings
from epigrok.random_streams import normal, stream_key


def head_answers(inputs: HeadInputs, settings: ToleranceSettings) -> Answers:
    """Answers with noise on the head's weights and bias, from cached features.

    The logits are linear in the size of the noise, so each draw needs one product, whatever the
    number of sizes asked for.
    """
    logits_NC = inputs.logits()
    noise_SNC = logit_noise(inputs, settings)

    def answers(scale: float) -> Int[Tensor, "S N"]:
        return _answers_of(logits_NC + scale * noise_SNC)

    return answers


def network_answers(
    model: nn.Module,
    inputs: Tensor,
    settings: ToleranceSettings,
    *,
    forward: Forward | None = None,
    only: tuple[str, ...] | None = None,
) -> Answers:
    """Answers with noise on every floating-point parameter, or on those named in `only`.

    Weights are swapped through `functional_call`, so the model is never changed. The caller has
    put it into evaluation mode.
    """
    named = {
        name: values.detach()
        for name, values in model.named_parameters()
        if values.is_floating_point() and (only is None or name in only)
    }
    if not named:
        raise ValueError(f"the model has none of the parameters {only}")
    noise_of = {name: stream_key(settings.seed, f"tolerance:{name}") for name in named}

    def noisy(scale: float, draw: int) -> dict[str, Tensor]:
        return {
            name: values
            * (1.0 + scale * normal(noise_of[name], tuple(values.shape), draw, values.device))
            for name, values in named.items()
        }

    @torch.no_grad()
    def answers(scale: float) -> Int[Tensor, "S N"]:
        rows = []
        for draw in range(settings.num_draws if scale else 1):
            wrapped = _Swapped(model, noisy(scale, draw))
            output = forward(wrapped, inputs) if forward else wrapped(inputs)
            rows.append(_answers_of(output.flatten(0, -2)))
        return torch.stack(rows).expand(settings.num_draws, -1)

    return answers


def row_tolerances(inputs: HeadInputs, settings: ToleranceSettings) -> Float[Tensor, " N"]:
    """For each row the noise on the head at which its answer changes, the median over draws."""
    # The lower median of an even number is one of the values: no mean with an infinite one.
    return flip_scales(inputs, settings).median(dim=0).values


def flip_scales(inputs: HeadInputs, settings: ToleranceSettings) -> Float[Tensor, "S N"]:
    """The noise on the head at which each row's answer changes, in each draw; inf where never.

    A row's answer is the highest of C lines in s. The line that is highest at s = 0 is left for
    good at its first crossing, so the crossing is exact and needs no search.
    """
    logits_NC = inputs.logits()
    noise_SNC = logit_noise(inputs, settings)
    answer_N1 = logits_NC.argmax(dim=1, keepdim=True)
    lead_NC = logits_NC.gather(1, answer_N1) - logits_NC
    answer_SN1 = answer_N1.expand(len(noise_SNC), -1, -1)
    gain_SNC = noise_SNC - noise_SNC.gather(2, answer_SN1)
    crossing_SNC = torch.where(gain_SNC > 0, lead_NC / gain_SNC, torch.inf)
    return crossing_SNC.scatter(2, answer_SN1, torch.inf).amin(dim=2)


def logit_noise(inputs: HeadInputs, settings: ToleranceSettings) -> Float[Tensor, "S N C"]:
    """What noise of size 1 adds to the logits, in each draw."""
    weight_CD, bias_C = inputs.head.weight_CD, inputs.head.bias_C
    device = weight_CD.device
    of_weight, of_bias = (
        stream_key(settings.seed, f"tolerance:head:{part}") for part in ("weight", "bias")
    )
    draws = []
    for draw in range(settings.num_draws):
        noise_CD = normal(of_weight, tuple(weight_CD.shape), draw, device)
        added_NC = inputs.features_ND @ (weight_CD * noise_CD).T
        if bias_C is not None:
            added_NC = added_NC + bias_C * normal(of_bias, tuple(bias_C.shape), draw, device)
        draws.append(added_NC)
    return torch.stack(draws)


class _Swapped:
    """A model that answers with other values for some of its parameters."""

    def __init__(self, model: nn.Module, parameters: dict[str, Tensor]) -> None:
        self._model, self._parameters = model, parameters

    def __call__(self, *args: object, **kwargs: object) -> Tensor:
        return functional_call(self._model, self._parameters, args, kwargs)


def _answers_of(logits: Float[Tensor, "*rows C"]) -> Int[Tensor, "*rows"]:
    """The most likely class of each row; -1 where the logits are not all finite."""
    is_finite = logits.isfinite().all(dim=-1)
    return logits.argmax(dim=-1).where(is_finite, -1)
