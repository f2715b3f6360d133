"""A Gaussian with independent weights: the posterior that IVON carries, and noise of any size."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from torch import Tensor, nn

from epigrok.posteriors.protocol import save_posterior
from epigrok.random_streams import normal, normal_of_streams, stream_key


@dataclass(frozen=True)
class DiagonalGaussian:
    """Weights that vary independently around their mean."""

    name: str
    mean: Mapping[str, Tensor]
    """Every parameter, and the buffers that belong to them where it holds any."""
    deviation: Mapping[str, Tensor]
    """Standard deviation of each weight, or one for all weights of a parameter."""
    seed: int = 0
    max_samples: int | None = None
    save = save_posterior

    def sample(self, index: int) -> Mapping[str, Tensor]:
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

    def __repr__(self) -> str:
        size = sum(self.mean[name].numel() for name in self.deviation)
        noisy = f"{size:,} noisy weights in {len(self.deviation)} of {len(self.mean)} tensors"
        return f"DiagonalGaussian({self.name!r}, {noisy}, seed={self.seed})"


def frozen_tensors(model: nn.Module) -> dict[str, Tensor]:
    """A copy of parameters and buffers: batch norm's averages belong to the weights."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in named}
