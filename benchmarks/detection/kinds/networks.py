"""The networks of the suite. The last linear layer of each is its head."""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class MLP(nn.Module):
    """Layers of ReLU units on numbers, or on the embeddings of a fixed number of tokens."""

    def __init__(  # noqa: PLR0913
        self,
        inputs: int,
        num_classes: int,
        *,
        widths: tuple[int, ...] = (128, 64),
        vocabulary: int = 0,
        embedding: int = 32,
        dropout: float = 0.0,
        scale: float = 1.0,
        normalised: bool = False,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding) if vocabulary else None
        width = inputs * embedding if vocabulary else inputs
        self.layers = nn.ModuleList()
        self.norms = nn.ModuleList()
        for next_width in widths:
            self.layers.append(nn.Linear(width, next_width))
            self.norms.append(nn.BatchNorm1d(next_width) if normalised else nn.Identity())
            width = next_width
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, num_classes)
        with torch.no_grad():
            for values in self.parameters():
                values.mul_(scale)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x if self.embed is None else self.embed(x)
        hidden = hidden.flatten(1)
        for layer, norm in zip(self.layers, self.norms):
            hidden = self.dropout(norm(layer(hidden)).relu())
        return self.head(hidden)


class _Block(nn.Module):
    def __init__(self, width: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.attend(self.norm_1(x)).view(batch, length, 3, self.num_heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.mix(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.down(self.up(self.norm_2(x)).relu()))


class Transformer(nn.Module):
    """Causal; answers at the last position, at every position, or at every second one."""

    def __init__(  # noqa: PLR0913
        self,
        inputs: int,
        num_classes: int,
        *,
        vocabulary: int,
        width: int = 64,
        num_layers: int = 1,
        num_heads: int = 4,
        answers: str = "last",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(0.02 * torch.randn(inputs, width))
        nn.init.normal_(self.embed.weight, std=0.1)
        self.layers = nn.ModuleList(_Block(width, num_heads, dropout) for _ in range(num_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)
        self.answers = answers

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.embed(x) + self.place
        for layer in self.layers:
            hidden = layer(hidden)
        if self.answers == "last":
            hidden = hidden[:, -1]
        elif self.answers == "odd":
            hidden = hidden[:, ::2]
        return self.head(self.norm(hidden))


class CNN(nn.Module):
    """Two convolutions with batch norm, dropout, and a hidden layer."""

    def __init__(
        self, inputs: int, num_classes: int, channels: int = 16, dropout: float = 0.0
    ) -> None:
        super().__init__()
        del inputs
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.BatchNorm2d(2 * channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * channels * 9, 64),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        self.head = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))
