"""Dropout that stays on: each sample leaves out other units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from epigrok.posteriors.calling import Forward, swapped_logits
from epigrok.posteriors.evaluating import evaluating
from epigrok.posteriors.gaussian import frozen_tensors
from epigrok.posteriors.protocol import save_posterior
from epigrok.random_streams import stream_key


@dataclass(frozen=True)
class DropoutSample:
    """One choice of the units to leave out: a seed beside the weights."""

    tensors: Mapping[str, Tensor]
    seed: int

    def logits(
        self, model: nn.Module, inputs: Any, forward: Forward | None
    ) -> Float[Tensor, "*positions C"]:
        """Logits in training mode, but for normalisation by running averages."""
        with evaluating(model):
            for module in model.modules():
                module.training = not isinstance(module, _NormBase)
            for generator in _generators(model):
                generator.manual_seed(self.seed)
            return swapped_logits(model, self.tensors, inputs, forward)


@dataclass(frozen=True)
class MCDropout:
    """Monte-Carlo dropout (Gal & Ghahramani 2016).

    Without dropout all samples of a network are equal, and its epistemic uncertainty is 0.
    """

    tensors: Mapping[str, Tensor]
    """Parameters and buffers."""
    seed: int = 0
    name: str = "mc-dropout"
    max_samples: int | None = None
    save = save_posterior

    @classmethod
    def of(cls, model: nn.Module, seed: int = 0) -> "MCDropout":
        """Dropout around the present weights of `model`."""
        return cls(frozen_tensors(model), seed)

    def sample(self, index: int) -> DropoutSample:
        """Units to leave out, which depend on (seed, index) and on the shape of the inputs."""
        return DropoutSample(self.tensors, stream_key(self.seed, f"dropout:{index}"))

    def __repr__(self) -> str:
        return f"MCDropout({len(self.tensors)} tensors, seed={self.seed})"


def _generators(model: nn.Module) -> list[torch.Generator]:
    """Torch's own generators on the CPU and on the model's GPUs: dropout takes no other."""
    gpus = {weights.device.index for weights in model.parameters() if weights.is_cuda}
    return [torch.default_generator, *(torch.cuda.default_generators[gpu] for gpu in gpus)]
