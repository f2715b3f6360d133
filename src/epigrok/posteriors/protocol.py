"""What every posterior over the weights offers, and how predictions are drawn from one.

A posterior is an immutable value. Its sample `index` is a pure function of the posterior, its seed
and the index, so that two checkpoints evaluated with the same indices share their random numbers.
Samples never touch the live weights: they go through `torch.func.functional_call`.

Letters: B rows, L tokens, T answers, C classes, D features.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call

from epigrok.model import Network

HEAD = "head"
"""Name under which a sample replaces the output head alone, tied to an embedding or not."""

Sample = Mapping[str, Tensor]
"""Parameters to replace; the others keep their live value."""

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
    predict = fused_on_gpu(_logits_of, _device_of(model))
    for index in range(num_samples):
        parameters = dict(posterior.sample(index))
        yield (predict(model, parameters, tokens_BL) for tokens_BL in tokens)


def features_of(model: Network, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B T D"]:
    """The model's features, quickly."""
    compute = fused_on_gpu(_features_of, _device_of(model))
    features_BTD: Float[Tensor, "B T D"] = compute(model, tokens_BL)
    return features_BTD


def _logits_of(model: Network, parameters: dict[str, Tensor], tokens_BL: Tensor) -> Tensor:
    logits_BTC: Tensor = functional_call(model, parameters, (tokens_BL,))
    return logits_BTC


def _features_of(model: Network, tokens_BL: Tensor) -> Tensor:
    return model.features(tokens_BL)


def fused_on_gpu(function: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """`function` compiled, on a GPU, where it pays: the same work is done again and again.

    `torch.compiler.set_stance("force_eager")` turns this off.
    """
    return _compiled(function) if device.type == "cuda" else function


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function)


def _device_of(model: Network) -> torch.device:
    return next(model.parameters()).device
