"""Networks of `unseen_5.py`: most are smooth. The last linear layer of each is its head."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot


class Linear(nn.Module):
    """Logistic regression on numbers, or on tokens at fixed places."""

    def __init__(self, inputs: int, num_classes: int, *, vocabulary: int = 0) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.head = nn.Linear(inputs * max(1, vocabulary), num_classes)

    def forward(self, x: Tensor) -> Tensor:
        numbers = one_hot(x, self.vocabulary).float() if self.vocabulary else x
        return self.head(numbers.flatten(1))


class SmoothMLP(nn.Module):
    """Layers of smooth units on numbers or pictures."""

    def __init__(
        self,
        inputs: int,
        num_classes: int,
        *,
        unit: Callable[[], nn.Module] = nn.Tanh,
        width: int = 96,
        num_layers: int = 3,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        for layer in range(num_layers):
            layers += [nn.Linear(inputs if layer == 0 else width, width), unit()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))


class Square(nn.Module):
    """Units that square."""

    def forward(self, x: Tensor) -> Tensor:
        return x.square()


class Wave(nn.Module):
    """Units that go up and down."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(2.0 * x)


class PooledCNN(nn.Module):
    """Convolutions of smooth units, means over patches, a linear layer."""

    def __init__(self, inputs: int, num_classes: int, channels: int = 24) -> None:
        super().__init__()
        side = round(inputs**0.5) // 4
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(channels * side * side, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))
