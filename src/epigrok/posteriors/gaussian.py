"""Gaussian noise on the weights, independent on all or any on the output head alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from epigrok.posteriors.calling import Forward
from epigrok.posteriors.head import Head
from epigrok.posteriors.head_curvature import is_at_bound
from epigrok.posteriors.protocol import Facts, features_of, save_posterior
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


@dataclass(frozen=True)
class HeadSample:
    """A head to predict with.

    `dict` of it gives parameters by name, unless the head has none of its own in the model.
    """

    head: Head

    def logits(
        self, model: nn.Module, inputs: Any, forward: Forward | None
    ) -> Float[Tensor, "*positions C"]:
        """Logits of this head; an embedding that is tied to the model's own head stays as it is."""
        name = self.head.weight_name or None
        return self.head.logits(features_of(model, inputs, forward, name))

    def keys(self) -> Iterable[str]:
        """Names of its parameters."""
        return self.head.parameters().keys()

    def __getitem__(self, name: str) -> Tensor:
        return self.head.parameters()[name]


class HeadGaussian(ABC):
    """A posterior over the output head from a Laplace fit, given the head of each sample."""

    name: str
    head: Head
    """The head at its mean."""
    prior_precision: float
    log_evidence: float
    num_answers: int
    """Answers it was fitted to: the curvature is a sum over them."""
    save = save_posterior

    @property
    def facts(self) -> Facts:
        """Prior precision, evidence, number of answers, and whether the search hit a bound."""
        return {
            "prior_precision": self.prior_precision,
            "log_evidence": self.log_evidence,
            "num_fit_answers": self.num_answers,
            "prior_precision_is_at_bound": is_at_bound(self.prior_precision),
        }

    @abstractmethod
    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Weights of sample `index`, the bias as last column where there is one."""

    def sample(self, index: int) -> HeadSample:
        """Replace the head and nothing else."""
        return HeadSample(self.head.with_matrix(self.sample_head(index)))

    def head_logits(
        self, features: Float[Tensor, "*positions D"], index: int
    ) -> Float[Tensor, "*positions C"]:
        """Logits under the head of sample `index`."""
        extended = self.head.extended(features)
        return functional.linear(extended, self.sample_head(index).to(features.dtype))

    def __repr__(self) -> str:
        fitted = f"prior precision {self.prior_precision:.4g}, {self.num_answers:,} answers"
        return f"{type(self).__name__}({self.name!r}, {self.head!r}, {fitted})"


def frozen_parameters(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the parameters that further training does not change."""
    return {name: weights.detach().clone() for name, weights in model.named_parameters()}


def frozen_tensors(model: nn.Module) -> dict[str, Tensor]:
    """A copy of parameters and buffers: batch norm's averages belong to the weights."""
    buffers = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    return {**frozen_parameters(model), **buffers}
