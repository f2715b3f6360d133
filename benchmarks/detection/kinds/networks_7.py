"""Networks of `unseen_7.py`: transformers, and tokens without embeddings.

The last linear layer of each is its head.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from benchmarks.detection.kinds.networks import Transformer


def widely_embedded(inputs: int, num_classes: int, *, std: float = 1.0, **sizes: Any) -> nn.Module:
    """A causal transformer whose embeddings begin as PyTorch begins them."""
    model = Transformer(inputs, num_classes, **sizes)
    nn.init.normal_(model.embed.weight, std=std)
    return model


class PooledTransformer(nn.Module):
    """Attends in both directions, norms after each layer, and answers from the mean."""

    def __init__(
        self,
        inputs: int,
        num_classes: int,
        *,
        vocabulary: int,
        width: int = 48,
        num_layers: int = 1,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(0.5 * torch.randn(inputs, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
            for _ in range(num_layers)
        )
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.embed(x) + self.place
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden.mean(dim=1))


class OneHotMLP(nn.Module):
    """Layers of ReLU units on tokens, each token a column of its own."""

    def __init__(
        self, inputs: int, num_classes: int, *, vocabulary: int, widths: tuple[int, ...] = (256,)
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        sizes = (inputs * vocabulary, *widths)
        self.layers = nn.Sequential(
            *(part for size in zip(sizes, sizes[1:]) for part in (nn.Linear(*size), nn.ReLU()))
        )
        self.head = nn.Linear(sizes[-1], num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(one_hot(x, self.vocabulary).float().flatten(1)))
