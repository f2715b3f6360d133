"""Independent Gaussian noise on the weights: what variational and noise posteriors share."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from epigrok.posteriors.protocol import Sample
from epigrok.random_streams import normal, stream_key


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
        return {
            name: mean
            + self.deviation[name]
            * normal(
                stream_key(self.seed, f"posterior:{name}"), tuple(mean.shape), index, mean.device
            )
            if name in self.deviation
            else mean
            for name, mean in self.mean.items()
        }


def frozen_parameters(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the parameters that further training does not change."""
    return {name: weights.detach().clone() for name, weights in model.named_parameters()}
