"""What a data set of the benchmark is, how rows are split, and labels that mean nothing.

Everything here and in `data_N.py` is a pure function of its arguments and a seed. Inputs are tokens
(int64) or numbers (float32); labels have one entry per row, or one per answer position of a
sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

Rows = tuple[Tensor, Tensor]
"""Inputs and labels."""
NUM_WATCHED = 2048
"""Held-out rows, where as many as wanted can be made."""


@dataclass(frozen=True, kw_only=True)
class Data:
    train: Rows
    watched: dict[str, Rows]
    num_classes: int
    vocabulary: int = 0
    """Number of tokens; 0 where inputs are numbers."""
    last_only: bool = True
    """Whether a look reads the last answer of a sequence only."""


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def split(x: Tensor, y: Tensor, num_train: int, seed: int) -> tuple[Rows, Rows]:
    order = torch.from_numpy(generator(seed).permutation(len(x)))
    chosen, rest = order[:num_train], order[num_train:]
    return (x[chosen], y[chosen]), (x[rest], y[rest])


def from_table(table: np.ndarray, fraction: float, seed: int, random_labels: bool) -> Data:
    num_rows, num_columns = table.shape
    values = table.reshape(-1)
    if random_labels:
        values = generator(seed + 1).integers(0, table.max() + 1, values.shape)
    first, second = np.divmod(np.arange(values.size), num_columns)
    x = torch.from_numpy(np.stack([first, second + num_rows], axis=1))
    train, rest = split(x, torch.from_numpy(values), int(fraction * values.size), seed)
    return Data(
        train=train,
        watched={"held out": rest},
        num_classes=int(table.max()) + 1,
        vocabulary=num_rows + num_columns,
    )


def made(x: np.ndarray, y: np.ndarray, num_train: int, seed: int, num_classes: int) -> Data:
    """Numbers with their labels, cut into training and held-out rows."""
    inputs = torch.from_numpy(x)
    train, rest = split(
        inputs.float() if x.dtype.kind == "f" else inputs,
        torch.from_numpy(y.astype(np.int64)),
        num_train,
        seed,
    )
    return Data(train=train, watched={"held out": rest}, num_classes=num_classes)


def with_wrong_labels(data: Data, share: float, seed: int) -> Data:
    if not share:
        return data
    rng = generator(seed + 2)
    x, y = data.train
    is_wrong = torch.from_numpy(rng.random(len(y)) < share)
    drawn = torch.from_numpy(rng.integers(0, data.num_classes, len(y)))
    return replace(data, train=(x, torch.where(is_wrong, drawn, y)))


def with_random_labels(data: Data, seed: int) -> Data:
    """The same inputs with labels that mean nothing."""
    rng = generator(seed + 3)

    def drawn(rows: int) -> torch.Tensor:
        return torch.from_numpy(rng.integers(0, data.num_classes, rows))

    watched = {name: (x, drawn(len(x))) for name, (x, _) in data.watched.items()}
    return replace(data, train=(data.train[0], drawn(len(data.train[0]))), watched=watched)


def other_labels(seed: int, make: Callable[[int], Data], share: float = 1.0) -> Data:
    """The data of `make` with a share of the training labels drawn at random."""
    data = make(seed)
    x, y = data.train
    rng = generator(seed + 3)
    is_drawn = torch.from_numpy(rng.random(len(y)) < share)
    drawn = torch.from_numpy(rng.integers(0, data.num_classes, len(y)))
    return replace(data, train=(x, torch.where(is_drawn, drawn, y)))


def all_random(seed: int, make: Callable[[int], Data]) -> Data:
    """The data of `make` with random labels in training and held out."""
    data = other_labels(seed, make)
    rng = generator(seed + 4)
    watched = {
        name: (x, torch.from_numpy(rng.integers(0, data.num_classes, len(x))))
        for name, (x, _) in data.watched.items()
    }
    return replace(data, watched=watched)
