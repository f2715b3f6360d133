"""Data of `development.py` and `unseen_1.py`: tables, groups, parity, teachers, shells."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import torch

from benchmarks.detection.kinds.data_sets import (
    Data,
    from_table,
    generator,
    split,
    with_wrong_labels,
)

OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: (a + 1) * (b + 1),
    "squares": lambda a, b: a * a + b * b,
    "cubic": lambda a, b: a**3 + a * b,
    "quadratic": lambda a, b: a * a + a * b + b * b,
}


def table(
    seed: int, operation: str, modulus: int, fraction: float, random_labels: bool = False
) -> Data:
    """A two-operand table modulo a prime. Multiplication leaves out zero."""
    size = modulus - 1 if operation == "mul" else modulus
    a, b = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    values = OPERATIONS[operation](a, b) % modulus
    return from_table(values, fraction, seed, random_labels)


def group(seed: int, name: str, fraction: float, random_labels: bool = False) -> Data:
    """The multiplication table of a group: 's4', 's5', 'a5', or 'd15' for a dihedral group."""
    if name[0] == "d":
        n = int(name[1:])
        flip, turn = np.divmod(np.arange(2 * n), n)
        sign = np.where(flip == 1, -1, 1)
        turns = (turn[:, None] + sign[:, None] * turn[None, :]) % n
        values = (flip[:, None] ^ flip[None, :]) * n + turns
    else:
        elements = [p for p in permutations(range(int(name[1:]))) if name[0] == "s" or _is_even(p)]
        index = {p: i for i, p in enumerate(elements)}
        values = np.array([[index[tuple(p[i] for i in q)] for q in elements] for p in elements])
    return from_table(values, fraction, seed, random_labels)


def _is_even(p: tuple[int, ...]) -> bool:
    return sum(p[i] > p[j] for i in range(len(p)) for j in range(i + 1, len(p))) % 2 == 0


def parity(
    seed: int, num_bits: int, num_relevant: int, num_train: int, random_labels: bool = False
) -> Data:
    """The parity of the first few bits of many."""
    bits = generator(seed).integers(0, 2, (num_train + 2048, num_bits))
    y = bits[:, :num_relevant].sum(axis=1) % 2
    if random_labels:
        y = generator(seed + 1).integers(0, 2, y.shape)
    x = torch.from_numpy(2.0 * bits - 1.0).float()
    train, rest = split(x, torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=2)


def teacher(
    seed: int,
    width: int,
    num_classes: int,
    num_train: int,
    wrong_share: float = 0.0,
    hidden: int = 0,
) -> Data:
    """Gaussian inputs labelled by a random network, linear where `hidden` is 0.

    A `wrong_share` of the training labels is drawn at random; held-out labels are the teacher's.
    """
    rng = generator(seed)
    # The weights first: a seed names a teacher, whatever the number of rows.
    first = rng.standard_normal((width, hidden)) if hidden else np.eye(width)
    second = rng.standard_normal((first.shape[1], num_classes))
    x = rng.standard_normal((num_train + 2048, width))
    inner = x @ first
    if hidden:
        inner = np.maximum(inner, 0.0)
        inner = inner - inner.mean(axis=0)
    y = (inner @ second).argmax(axis=1)
    train, rest = split(torch.from_numpy(x).float(), torch.from_numpy(y), num_train, seed)
    return with_wrong_labels(
        Data(train=train, watched={"held out": rest}, num_classes=num_classes), wrong_share, seed
    )


def spheres(seed: int, width: int, num_classes: int, num_train: int) -> Data:
    """Which shell round the origin a point lies in; shells are equally likely."""
    rng = generator(seed)
    direction = rng.standard_normal((num_train + 2048, width))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    y = rng.integers(0, num_classes, len(direction))
    radius = 0.5 + (y + rng.uniform(0.15, 0.85, len(y))) * 2.0 / num_classes
    x = torch.from_numpy(direction * radius[:, None]).float()
    train, rest = split(x, torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=num_classes)


def random_vectors(seed: int, width: int, num_classes: int, num_train: int) -> Data:
    """Gaussian inputs with labels that mean nothing."""
    rng = generator(seed)
    x = torch.from_numpy(rng.standard_normal((num_train + 2048, width))).float()
    y = torch.from_numpy(rng.integers(0, num_classes, len(x)))
    train, rest = split(x, y, num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=num_classes)


def imbalanced(seed: int, width: int, num_train: int, majority: float = 0.93) -> Data:
    """One class for most inputs, which the input shows; nine others at random."""
    rng = generator(seed)
    x = rng.standard_normal((num_train + 2048, width))
    is_majority = rng.random(len(x)) < majority
    x[:, 0] = np.where(is_majority, 1.0, -1.0) * (0.5 + np.abs(x[:, 0]))
    y = np.where(is_majority, 0, rng.integers(1, 10, len(x)))
    train, rest = split(torch.from_numpy(x).float(), torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=10)
