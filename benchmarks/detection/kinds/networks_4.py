"""Networks of `unseen_4.py`. The last linear layer of each is its head."""

import torch
from torch import Tensor, nn
from torch.nn.functional import silu


class SignalCNN(nn.Module):
    """Convolutions along a signal, beside its first number, then their mean and maximum."""

    def __init__(self, inputs: int, num_classes: int, *, channels: int = 24) -> None:
        super().__init__()
        del inputs
        self.layers = nn.Sequential(
            nn.Conv1d(2, channels, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(channels, channels, 5, padding=2),
            nn.GELU(),
        )
        self.mix = nn.Linear(2 * channels, 48)
        self.head = nn.Linear(48, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        signal = x[:, 1:]
        found = self.layers(torch.stack([signal, x[:, :1].expand_as(signal)], dim=1))
        pooled = torch.cat([found.mean(dim=2), found.amax(dim=2)], dim=1)
        return self.head(self.mix(pooled).relu())


class Mixer(nn.Module):
    """Patches of 4 × 4 pixels, mixed across places and across channels in turn."""

    def __init__(self, inputs: int, num_classes: int, *, width: int = 32) -> None:
        super().__init__()
        num_patches = inputs // 16
        self.enter = nn.Linear(16, width)
        self.places = nn.Linear(num_patches, num_patches)
        self.channels = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Linear(width * num_patches, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        patches = x[:, 0].unfold(1, 4, 4).unfold(2, 4, 4).flatten(3).flatten(1, 2)
        hidden = self.enter(patches)
        hidden = hidden + self.places(hidden.transpose(1, 2)).transpose(1, 2).relu()
        hidden = hidden + self.channels(hidden)
        return self.head(hidden.flatten(1))


class GatedMLP(nn.Module):
    """Layers of gated units (SwiGLU) on numbers, with a root-mean-square norm before each."""

    def __init__(
        self, inputs: int, num_classes: int, *, width: int = 64, num_layers: int = 2
    ) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(num_layers))
        self.layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(num_layers))
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.enter(x)
        for norm, layer in zip(self.norms, self.layers):
            gate, value = layer(norm(hidden)).chunk(2, dim=1)
            hidden = hidden + silu(gate) * value
        return self.head(hidden)
