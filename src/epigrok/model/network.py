"""The interface of a run's network, and the registry that builds networks from settings.

Letters: B sequences, L tokens, T answers, D features, C classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from epigrok.config import ModelConfig, RunConfig, TaskConfig
from epigrok.registry import Registry


class Network(nn.Module, ABC):
    """Maps tokens to features, and features to logits at answer positions."""

    @property
    @abstractmethod
    def head_weight(self) -> Float[Tensor, "C D"]:
        """Weights that turn features into logits."""

    @abstractmethod
    def features(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B T D"]:
        """The head's inputs at the positions that predict answers."""

    def last_features(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B 1 D"]:
        """The same for each sequence's last answer alone; a network may have a cheaper way."""
        return self.features(tokens_BL)[:, -1:]

    def forward(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B T C"]:
        """Logits of each sequence's answers."""
        return functional.linear(self.features(tokens_BL), self.head_weight)

    def hidden_matrices(self) -> list[str]:
        """Names of the maps between hidden spaces: not the embedding, not the head.

        Muon orthogonalises their updates, which does not suit look-up tables and heads.
        """
        head = self.head_weight
        return [
            f"{name}.weight"
            for name, module in self.named_modules()
            if isinstance(module, nn.Linear) and module.weight is not head
        ]

    def flops_per_sequence(self, length: int) -> float | None:
        """Multiplications and additions of a plain forward pass; None if torch is to count them."""
        del length
        return None


_BUILDERS: Registry[Callable[..., Network]] = Registry("model", home="epigrok.model")
_Builder = TypeVar("_Builder", bound=Callable[..., Any])


def register_model(settings: type[ModelConfig]) -> Callable[[_Builder], _Builder]:
    """Build networks with these settings by the decorated function of (settings, task, seed).

    The function returns a `Network` whose initial weights depend on its arguments alone.
    """

    def register(build: _Builder) -> _Builder:
        _BUILDERS.add(settings.__name__, build)
        return build

    return register


def model_builder(settings: ModelConfig) -> Callable[[Any, TaskConfig, int], Network]:
    """The function that builds a network with these settings."""
    return _BUILDERS.find(type(settings).__name__)


def build_model(config: RunConfig, device: torch.device | str = "cpu") -> Network:
    """The run's network with its initial weights: a function of the config alone."""
    # Constructing torch layers draws from the global generator, which belongs to the caller.
    with torch.random.fork_rng(devices=[]):
        model = model_builder(config.model)(config.model, config.task, config.run_seed)
    return model.to(device)
