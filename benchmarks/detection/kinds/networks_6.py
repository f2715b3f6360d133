"""Networks of `unseen_6.py`: large weights, large features, frozen features.

The last linear layer of each is its head.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def enlarged(
    make: Callable[..., nn.Module], by: float, head: float = 1.0, **sizes: Any
) -> nn.Module:
    """The network of `make` with all matrices `by` times as large at first, its head `head` times.

    Biases and the gains of norms stay as they are.
    """
    model = make(**sizes)
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.ndim > 1:
                values.mul_(head if name.startswith("head") else by)
    return model


class MotifCNN(nn.Module):
    """Convolutions along a signal, and their largest response."""

    def __init__(self, inputs: int, num_classes: int, *, channels: int = 24) -> None:
        super().__init__()
        del inputs
        self.layers = nn.Sequential(
            nn.Conv1d(1, channels, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(channels, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x[:, None]).amax(dim=2))


class PlainCNN(nn.Module):
    """Two convolutions with strides, and a hidden layer; no norm."""

    def __init__(self, inputs: int, num_classes: int, *, channels: int = 12) -> None:
        super().__init__()
        side = round(inputs**0.5) // 4
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * channels * side * side, 64),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))


class LargeFeatures(nn.Module):
    """Two hidden layers whose features are multiplied before the head, behind a norm or not."""

    def __init__(
        self, inputs: int, num_classes: int, *, times: float, has_norm: bool, width: int = 128
    ) -> None:
        super().__init__()
        self.times = times
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(inputs, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.LayerNorm(width) if has_norm else nn.GELU(),
        )
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.times * self.layers(x))


class RandomFeatures(nn.Module):
    """Many cosines of fixed random projections; only the head is trained."""

    def __init__(
        self, inputs: int, num_classes: int, *, num_features: int = 1500, rate: float = 1.0
    ) -> None:
        super().__init__()
        self.register_buffer("project", rate * torch.randn(inputs, num_features))
        self.register_buffer("phase", 2.0 * torch.pi * torch.rand(num_features))
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head((x.flatten(1) @ self.project + self.phase).cos())
