"""Gaussian noise on the weights, independent on all or any on the output head alone."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from epigrok.posteriors.protocol import HEAD, Sample
from epigrok.random_streams import normal, normal_of_streams, stream_key


@dataclass(frozen=True)
class DiagonalGaussian:
    """Weights that vary independently around their mean."""

    name: str
    mean: Mapping[str, Tensor]
    deviation: Mapping[str, Tensor]
    """Standard deviation of each weight, or one for all weights of a parameter."""
    seed: int = 0
    max_samples: int | None = None

    def sample(self, index: int) -> Sample:
        """Mean plus noise; the noise depends on (seed, parameter name, index) alone.

        Posteriors with the same seed share it, whatever their mean and deviation, and so do all
        checkpoints of a run: differences between them are not differences of luck.
        """
        noise = self._noise(index)
        return {
            name: (weights + self.deviation[name] * noise[name]).to(weights.dtype)
            if name in self.deviation
            else weights
            for name, weights in self.mean.items()
        }

    def _noise(self, index: int) -> dict[str, Tensor]:
        keys = {name: stream_key(self.seed, f"posterior:{name}") for name in self.deviation}
        shapes = {name: tuple(self.mean[name].shape) for name in keys}
        device = next(iter(self.mean.values())).device
        if device.type != "cuda":
            return {name: normal(keys[name], shapes[name], index, device) for name in keys}
        sizes = [prod(shape) for shape in shapes.values()]
        parts = normal_of_streams(list(keys.values()), sizes, index, device).split(sizes)
        return {name: part.view(shapes[name]) for name, part in zip(keys, parts)}


class HeadGaussian(ABC):
    """A posterior over the output head, given the head of each sample."""

    @abstractmethod
    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Head weights of sample `index`, in double precision."""

    def sample(self, index: int) -> Sample:
        """Replace the head and nothing else."""
        return {HEAD: self.sample_head(index).to(torch.float32)}

    def head_logits(
        self, features_BTD: Float[Tensor, "B T D"], index: int
    ) -> Float[Tensor, "B T C"]:
        """Logits under the head of sample `index`."""
        return functional.linear(features_BTD, self.sample_head(index).to(features_BTD.dtype))


def frozen_parameters(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the parameters that further training does not change."""
    return {name: weights.detach().clone() for name, weights in model.named_parameters()}
