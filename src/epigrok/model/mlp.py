"""Multilayer perceptron for the classic family: two operands -> features -> logits.

Letters: B sequences, L tokens of each (the two operands first), D features, C classes.
"""

from itertools import pairwise
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from epigrok.config import MLPConfig, TaskConfig
from epigrok.model.lookup import look_up
from epigrok.model.network import Network, register_model
from epigrok.random_streams import normal, stream_key, uniform


class MLP(Network):
    """ReLU layers over the concatenated embeddings of both operands."""

    def __init__(self, config: MLPConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, config.embedding_width)
        widths = [2 * config.embedding_width] + [config.hidden_width] * config.num_hidden_layers
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.head = nn.Linear(config.hidden_width, vocabulary_size, bias=False)

    @property
    def head_weight(self) -> Float[Tensor, "C D"]:
        """Weights that turn features into logits."""
        return self.head.weight

    def features(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B 1 D"]:
        """The head's inputs, for the one answer of each sequence."""
        hidden_BD = look_up(self.embedding.weight, tokens_BL[:, :2]).flatten(start_dim=1)
        for layer in self.layers:
            hidden_BD = functional.relu(layer(hidden_BD))
        return hidden_BD[:, None]


@register_model(MLPConfig)
def build_mlp(config: MLPConfig, task: TaskConfig, run_seed: int) -> MLP:
    """An MLP with its initial weights."""
    model = MLP(config, task.vocabulary_size)
    initialise_mlp(model, run_seed)
    return model


def initialise_mlp(model: MLP, run_seed: int) -> None:
    """Standard normal embeddings; linear layers uniform in ±1/√(fan in), as torch does."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            key, shape = stream_key(run_seed, f"init:{name}"), tuple(parameter.shape)
            if name.startswith("embedding"):
                parameter.copy_(normal(key, shape))
                continue
            owner = model.get_submodule(name.rpartition(".")[0])
            assert isinstance(owner, nn.Linear)
            parameter.copy_((2.0 * uniform(key, shape) - 1.0) / sqrt(owner.in_features))
