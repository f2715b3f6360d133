"""Networks of `unseen_3.py`. The last linear layer of each is its head."""

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """An LSTM or a GRU over tokens or numbers; answers after the last one."""

    def __init__(
        self, inputs: int, num_classes: int, *, vocabulary: int = 0, width: int = 48, cell: str
    ) -> None:
        super().__init__()
        del inputs
        self.embed = nn.Embedding(vocabulary, 16) if vocabulary else nn.Linear(1, 16)
        self.cell = {"lstm": nn.LSTM, "gru": nn.GRU}[cell](16, width, batch_first=True)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.embed(x[..., None] if x.is_floating_point() else x)
        return self.head(self.cell(hidden)[0][:, -1])


class ResidualMLP(nn.Module):
    """Residual layers of GELU units, each behind a layer norm, and one before the head."""

    def __init__(
        self,
        inputs: int,
        num_classes: int,
        *,
        vocabulary: int = 0,
        width: int = 96,
        num_layers: int = 2,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 32) if vocabulary else None
        self.enter = nn.Linear(inputs * 32 if vocabulary else inputs, width)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x if self.embed is None else self.embed(x)
        hidden = self.enter(hidden.flatten(1))
        for layer in self.layers:
            hidden = hidden + layer(hidden)
        return self.head(self.norm(hidden))


class TanhMLP(nn.Module):
    """Two layers of tanh units on numbers, or on the embeddings of two tokens."""

    def __init__(
        self, inputs: int, num_classes: int, *, vocabulary: int = 0, width: int = 96
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 48) if vocabulary else None
        self.layers = nn.Sequential(
            nn.Linear(inputs * 48 if vocabulary else inputs, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
        )
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x if self.embed is None else self.embed(x)
        return self.head(self.layers(hidden.flatten(1)))


class DepthwiseCNN(nn.Module):
    """Depthwise and pointwise convolutions with group norm, then the mean over places."""

    def __init__(self, inputs: int, num_classes: int, channels: int = 24) -> None:
        super().__init__()
        del inputs
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            nn.Conv2d(channels, 2 * channels, 1),
            nn.GroupNorm(4, 2 * channels),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(8 * channels, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))


class TextCNN(nn.Module):
    """A convolution over the embeddings of tokens, and its largest response."""

    def __init__(
        self, inputs: int, num_classes: int, *, vocabulary: int, channels: int = 48, reach: int = 5
    ) -> None:
        super().__init__()
        del inputs
        self.embed = nn.Embedding(vocabulary, 12)
        self.convolve = nn.Conv1d(12, channels, reach)
        self.mix = nn.Linear(channels, channels)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        found = self.convolve(self.embed(x).transpose(1, 2)).relu().amax(dim=2)
        return self.head(self.mix(found).relu())


class VisionTransformer(nn.Module):
    """Patches of 4 × 4 pixels, one or more layers, the mean over patches, a layer norm."""

    def __init__(
        self, inputs: int, num_classes: int, *, width: int = 48, num_layers: int = 1
    ) -> None:
        super().__init__()
        num_patches = inputs // 16
        self.enter = nn.Linear(16, width)
        self.place = nn.Parameter(0.02 * torch.randn(num_patches, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        patches = x[:, 0].unfold(1, 4, 4).unfold(2, 4, 4).flatten(3).flatten(1, 2)
        hidden = self.enter(patches) + self.place
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden.mean(dim=1)))


class SetTransformer(nn.Module):
    """Attends in both directions over numbers, and answers for the first one."""

    def __init__(self, inputs: int, num_classes: int, *, width: int = 48) -> None:
        super().__init__()
        self.enter = nn.Linear(1, width)
        self.place = nn.Parameter(0.02 * torch.randn(inputs, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.enter(x[..., None]) + self.place
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden[:, 0]))
