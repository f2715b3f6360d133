"""What every posterior over the weights offers, and how predictions are drawn from one.

A posterior is an immutable value. Its sample `index` is a pure function of the posterior, its seed
and the index, so that two checkpoints evaluated with the same indices share their random numbers.
Samples never touch the live weights: they go through `torch.func.functional_call`.

Letters: B rows, L tokens, T answers, C classes, D features.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from epigrok.model import Network

HEAD = "head"
"""Name under which a sample replaces the output head alone, tied to an embedding or not."""

Sample = Mapping[str, Tensor]
"""Parameters to replace; the others keep their live value."""


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


def sampled_logits(
    model: Network,
    posterior: Posterior,
    tokens_BL: Int[Tensor, "B L"],
    num_samples: int,
) -> Iterator[Float[Tensor, "B T C"]]:
    """Logits under samples 0 … num_samples - 1, in turn."""
    features_BTD: Tensor | None = None
    for index in range(num_samples):
        sample = posterior.sample(index)
        if sample.keys() <= {HEAD}:
            # Only the head differs between such samples: its input is computed once.
            if features_BTD is None:
                features_BTD = model.features(tokens_BL)
            yield functional.linear(features_BTD, sample.get(HEAD, model.head_weight))
        else:
            with torch.no_grad():
                yield functional_call(model, dict(sample), (tokens_BL,))
