"""What every posterior over the weights offers, and how predictions are drawn from one.

A posterior is an immutable value. Its sample `index` is a pure function of the posterior, its seed
and the index, so that two checkpoints evaluated with the same indices share their random numbers.
Samples never touch the live weights: `logits_of` puts them in their place for one prediction.

Letters: T answers or other positions, C classes, D features.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.posteriors.calling import Forward, swapped_logits
from epigrok.posteriors.evaluating import evaluating
from epigrok.posteriors.head import head_pass, own_head
from epigrok.tensor_files import read_record, write_record

FILE_FORMAT = "epigrok-posterior-1"
Facts = Mapping[str, float]
"""Columns that tables keep beside a posterior's scores."""
_NUMBERS_IN_CACHE = 1 << 17
_NUMBERS_OTHERWISE = 1 << 22


@runtime_checkable
class Predictor(Protocol):
    """A sample that predicts by itself, because it is not, or not only, a set of parameters."""

    def logits(
        self, model: nn.Module, inputs: Any, forward: Forward | None
    ) -> Float[Tensor, "*positions C"]:
        """The logits of `model` under this sample; the caller sees to its mode."""
        ...


Sample = Mapping[str, Tensor] | Predictor
"""Parameters and buffers to replace; the others keep their live value. Or what predicts itself."""


@runtime_checkable
class NetworkWithHead(Protocol):
    """A network that tells what its head sees, as those of this package do."""

    @property
    def head_weight(self) -> Float[Tensor, "C D"]:
        """Weights that turn features into logits; there is no bias."""
        ...

    def features(self, inputs: Any, /) -> Float[Tensor, "*positions D"]:
        """What the head sees at the positions that have logits."""
        ...


@runtime_checkable
class Posterior(Protocol):
    """A distribution over the weights of a network, or over what else its predictions depend on."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def max_samples(self) -> int | None:
        """How many distinct samples exist; None for a continuous distribution."""
        ...

    def sample(self, index: int) -> Sample:
        """Sample `index`, a pure function of the posterior and the index."""
        ...


@runtime_checkable
class HeadPosterior(Posterior, Protocol):
    """A posterior that leaves everything before the output head as it is.

    Where it also has a `head`, that is the model's at its mean.
    """

    def head_logits(
        self, features: Float[Tensor, "*positions D"], index: int
    ) -> Float[Tensor, "*positions C"]:
        """Logits of sample `index`, from features computed once for all samples."""
        ...


@runtime_checkable
class PosteriorWithFacts(Posterior, Protocol):
    """A posterior that tells what it was fitted to, and with what result."""

    @property
    def facts(self) -> Facts:
        """What its width depends on."""
        ...


@runtime_checkable
class VariationalOptimiser(Protocol):
    """An optimiser that carries a posterior over the weights it trains, as IVON does."""

    def sampled_weights(self, sample: int = 0) -> AbstractContextManager[None]:
        """Set the parameters to a sample of this step for the time of a `with` block."""
        ...

    def posterior(self, model: nn.Module, seed: int = 0) -> Any:
        """The current posterior over the parameters of `model`."""
        ...

    def spread(self) -> dict[str, float]:
        """How wide the posterior is, as columns of the table `training`."""
        ...


def require_posterior(value: Any) -> None:
    """Refuse what is no posterior, such as the class of one."""
    if isinstance(value, type) or not isinstance(value, Posterior):
        found = value if isinstance(value, type) else type(value)
        raise UserError(f"a posterior is needed, such as Point.of(model), got {found.__name__}")


def elements_per_block(device: torch.device) -> int:
    """How many numbers to work on at a time; it bounds memory and changes no result.

    A processor is several times faster where they stay in its cache; a GPU wants more of them.
    """
    return _NUMBERS_IN_CACHE if device.type == "cpu" else _NUMBERS_OTHERWISE


def save_posterior(posterior: Posterior, path: Path | str) -> None:
    """Write a posterior to one file in the safetensors format, which `load_posterior` reads.

    It may be of a class of your own, if that is a dataclass.
    """
    write_record(posterior, path, FILE_FORMAT)


def load_posterior(
    path: Path | str, device: torch.device | str = "cpu", classes: Iterable[type] = ()
) -> Any:
    """The posterior that was written to `path`.

    Args:
        path: Its file.
        device: Where its tensors go.
        classes: Dataclasses of your own that it may be made of.
    """
    # Here and not above: the classes are made of what this module defines.
    from epigrok import posteriors

    offered = {name: getattr(posteriors, name) for name in posteriors.__all__}
    known = {name: value for name, value in offered.items() if is_dataclass(value)}
    own = {each.__name__: each for each in classes}
    return read_record(path, FILE_FORMAT, known | own, device)


def sampled_logits(
    model: nn.Module,
    posterior: Posterior,
    inputs: Sequence[Any],
    num_samples: int,
    forward: Forward | None = None,
) -> Iterator[Iterator[Float[Tensor, "*positions C"]]]:
    """For samples 0 … num_samples - 1 in turn, the logits of each part of the inputs in turn.

    The caller has put the model into evaluation mode.
    """
    if isinstance(posterior, HeadPosterior):
        features = [_features_under(posterior, model, part, forward) for part in inputs]
        for index in range(num_samples):
            yield (posterior.head_logits(seen, index) for seen in features)
        return
    for index in range(num_samples):
        sample = posterior.sample(index)
        yield (_logits_under(model, sample, part, forward) for part in inputs)


def logits_of(
    model: nn.Module, sample: Sample, inputs: Any, forward: Forward | None = None
) -> Float[Tensor, "*positions C"]:
    """The logits of `model` under `sample`, in evaluation mode; the model stays as it is."""
    with evaluating(model):
        return _logits_under(model, sample, inputs, forward)


def features_of(
    model: nn.Module, inputs: Any, forward: Forward | None = None, head: str | None = None
) -> Float[Tensor, "*positions D"]:
    """What the head of the model sees."""
    if isinstance(model, NetworkWithHead) and forward is None:
        return model.features(inputs)
    return head_pass(model, inputs, forward, head=head).features


def _features_under(
    posterior: HeadPosterior, model: nn.Module, inputs: Any, forward: Forward | None
) -> Float[Tensor, "*positions D"]:
    fitted = getattr(posterior, "head", None)
    if fitted is None:
        return features_of(model, inputs, forward)
    if isinstance(model, NetworkWithHead) and forward is None:
        own_head(model, model.head_weight).require_fitted(fitted)
        return model.features(inputs)
    seen = head_pass(model, inputs, forward, head=fitted.weight_name or None)
    seen.head.require_fitted(fitted)
    return seen.features


def _logits_under(
    model: nn.Module, sample: Sample, inputs: Any, forward: Forward | None
) -> Float[Tensor, "*positions C"]:
    if isinstance(sample, Predictor):
        return sample.logits(model, inputs, forward)
    return swapped_logits(model, sample, inputs, forward)
