"""Noise of a fixed size on every matrix: the control for posteriors that learn their spread.

If a learned posterior's uncertainty moves like this one's, it only shows how sensitive the network
is to small changes of its weights.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from epigrok.posteriors.gaussian import DiagonalGaussian, frozen_tensors
from epigrok.posteriors.kinds import (
    POSTERIOR_SEED,
    FitRequest,
    positive_number,
    register_posterior,
)


class WeightNoise:
    """Makes noise posteriors; vectors (gains, biases) get no noise."""

    @staticmethod
    def relative(model: nn.Module, scale: float, seed: int = 0) -> DiagonalGaussian:
        """Noise of `scale` times the standard deviation of each matrix's own entries."""
        deviation = {
            # A single entry has no standard deviation.
            name: scale * (weights.std() if weights.numel() > 1 else weights.new_zeros(()))
            for name, weights in _matrices(model).items()
        }
        return DiagonalGaussian(f"weight-noise:{scale:g}", frozen_tensors(model), deviation, seed)

    @staticmethod
    def isotropic(
        model: nn.Module, sigma: float, seed: int = 0, name: str = "isotropic"
    ) -> DiagonalGaussian:
        """The same standard deviation for every entry of every matrix."""
        deviation = {
            key: torch.full((), sigma, device=weights.device)
            for key, weights in _matrices(model).items()
        }
        return DiagonalGaussian(name, frozen_tensors(model), deviation, seed)


def _matrices(model: nn.Module) -> dict[str, Tensor]:
    named = {name: weights.detach() for name, weights in model.named_parameters()}
    return {n: w for n, w in named.items() if w.ndim >= 2 and w.is_floating_point()}


@register_posterior("weight-noise", role="control", read_argument=positive_number)
def fit_weight_noise(request: FitRequest) -> DiagonalGaussian:
    """Noise of the requested size on every matrix."""
    noise = WeightNoise.relative(request.model, request.value, POSTERIOR_SEED)
    return replace(noise, name=request.name.text)
