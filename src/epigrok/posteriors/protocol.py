"""What every posterior over the weights offers, and how predictions are drawn from one.

A posterior is an immutable value. Its sample `index` is a pure function of the posterior, its seed
and the index, so that two checkpoints evaluated with the same indices share their random numbers.
Samples never touch the live weights: `logits_of` puts them in their place for one prediction.

Letters: B rows, L tokens, T answers, C classes, D features.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from epigrok.model import Network

HEAD = "head"
"""Name under which a sample replaces the output head alone, tied to an embedding or not."""

Sample = Mapping[str, Tensor]
"""Parameters to replace, or `HEAD` alone; the others keep their live value. See `logits_of`."""

Facts = Mapping[str, float]
"""Columns that tables keep beside a posterior's scores."""


@runtime_checkable
class Posterior(Protocol):
    """A distribution over the weights of a network."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def max_samples(self) -> int | None:
        """How many distinct samples exist; None for a continuous distribution."""
        ...

    def sample(self, index: int) -> Sample:
        """Parameters of sample `index`, a pure function of the posterior and the index."""
        ...


@runtime_checkable
class HeadPosterior(Posterior, Protocol):
    """A posterior that leaves everything before the output head as it is."""

    def head_logits(
        self, features_BTD: Float[Tensor, "B T D"], index: int
    ) -> Float[Tensor, "B T C"]:
        """Logits of sample `index`, from features computed once for all samples."""
        ...


@runtime_checkable
class FittedPosterior(Posterior, Protocol):
    """A posterior that tells what it was fitted to, and with what result."""

    @property
    def facts(self) -> Facts:
        """What its width hangs on."""
        ...


@runtime_checkable
class VariationalOptimiser(Protocol):
    """An optimiser that carries a posterior over the weights it trains, as IVON does."""

    def sampled_weights(self) -> AbstractContextManager[None]:
        """Set the parameters to a sample for the time of a `with` block."""
        ...

    def posterior(self, model: nn.Module, seed: int = 0) -> Any:
        """The current posterior over the parameters of `model`."""
        ...

    def spread(self) -> dict[str, float]:
        """How wide the posterior is, as columns of the table `training`."""
        ...


def sampled_logits(
    model: Network,
    posterior: Posterior,
    tokens: Sequence[Int[Tensor, "_ L"]],
    num_samples: int,
) -> Iterator[Iterator[Float[Tensor, "_ T C"]]]:
    """For samples 0 … num_samples - 1 in turn, the logits of each chunk of rows in turn."""
    if isinstance(posterior, HeadPosterior):
        features = [features_of(model, tokens_BL) for tokens_BL in tokens]
        for index in range(num_samples):
            yield (posterior.head_logits(features_BTD, index) for features_BTD in features)
        return
    for index in range(num_samples):
        parameters = dict(posterior.sample(index))
        yield (logits_of(model, parameters, tokens_BL) for tokens_BL in tokens)


def logits_of(
    model: Network, sample: Sample, tokens_BL: Int[Tensor, "B L"]
) -> Float[Tensor, "B T C"]:
    """The logits of `model` with the parameters of `sample` in the place of its own."""
    if HEAD in sample:
        # An embedding tied to the head stays as it was, which `functional_call` cannot do.
        return functional.linear(model.features(tokens_BL), sample[HEAD])
    logits_BTC: Float[Tensor, "B T C"] = functional_call(model, dict(sample), (tokens_BL,))
    return logits_BTC


def features_of(model: Network, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B T D"]:
    """What the head of the model sees."""
    return model.features(tokens_BL)
