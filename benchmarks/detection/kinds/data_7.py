"""Data of the kinds of `unseen_7.py`: strings for transformers, and rules that turn slowly.

Everything is a pure function of its arguments and a seed, as in `data_sets.py`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.detection.kinds.data_sets import NUM_WATCHED, Data, from_table, generator, made


def ascents(seed: int, num_train: int, length: int = 6, letters: int = 10) -> Data:
    """Whether the letters of a string go up more often than down, first against last half."""
    x = generator(seed).integers(0, letters, (num_train + NUM_WATCHED, length))
    half = length // 2
    y = x[:, :half].sum(axis=1) > x[:, half:].sum(axis=1)
    return replace(made(x, y, num_train, seed, 2), vocabulary=letters)


def same_kind(seed: int, num_train: int, length: int = 7, letters: int = 16) -> Data:
    """Of how many kinds the first three letters are, letters coming in four kinds."""
    kind_of = generator(23).permutation(letters) % 4
    x = generator(seed).integers(0, letters, (num_train + NUM_WATCHED, length))
    kinds = np.sort(kind_of[x[:, :3]], axis=1)
    y = (kinds[:, 1:] != kinds[:, :-1]).sum(axis=1)
    return replace(made(x, y, num_train, seed, 3), vocabulary=letters)


def words(seed: int, num_train: int, length: int = 8, letters: int = 20) -> Data:
    """Strings without any rule; labels are drawn by `all_random`."""
    x = generator(seed).integers(0, letters, (num_train + NUM_WATCHED, length))
    return replace(made(x, np.arange(len(x)) % 2, num_train, seed, 2), vocabulary=letters)


def running_sum(seed: int, num_train: int, modulus: int = 5, length: int = 4) -> Data:
    """The sum of a few digits, modulo their number."""
    x = generator(seed).integers(0, modulus, (4 * (num_train + NUM_WATCHED), length))
    x = np.unique(x, axis=0)
    x = x[generator(seed + 1).permutation(len(x))]
    return replace(made(x, x.sum(axis=1) % modulus, num_train, seed, modulus), vocabulary=modulus)


def difference_table(seed: int, modulus: int, fraction: float) -> Data:
    """The table of a - 3b modulo a prime."""
    a, b = np.meshgrid(np.arange(modulus), np.arange(modulus), indexing="ij")
    return from_table((a - 3 * b) % modulus, fraction, seed, False)


def sectors(
    seed: int, num_train: int, turn: float = 0.0, width: int = 12, num_sectors: int = 4
) -> Data:
    """In which sector of a plane in more dimensions a point lies; `turn` of a circle turns it."""
    axes = np.linalg.qr(generator(29).standard_normal((width, 2)))[0]
    x = generator(seed).standard_normal((num_train + NUM_WATCHED, width))
    along, beside = (x @ axes).T
    angle = np.arctan2(beside, along) / (2.0 * np.pi) + turn
    return made(x, np.floor(angle * num_sectors) % num_sectors, num_train, seed, num_sectors)


def ridges(seed: int, num_train: int, turn: float = 0.0, noise: float = 0.5) -> Data:
    """Which of four ways the ridges of a noisy picture of 12 x 12 run, turned a little further."""
    rng = generator(seed)
    y = rng.integers(0, 4, num_train + NUM_WATCHED)
    angle = np.pi * (y / 4 + turn) + rng.uniform(-0.15, 0.15, len(y))
    down, right = np.meshgrid(np.arange(12), np.arange(12), indexing="ij")
    along = right[None] * np.cos(angle)[:, None, None] + down[None] * np.sin(angle)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, len(y))[:, None, None]
    x = np.sin(1.5 * along + phase) + noise * rng.standard_normal((len(y), 12, 12))
    return made(x[:, None], y, num_train, seed, 4)


def only_classes(seed: int, make: Callable[[int], Data], classes: tuple[int, ...]) -> Data:
    """The data of `make`, trained on rows of some classes only."""
    data = make(seed)
    x, y = data.train
    is_kept = sum(y == label for label in classes) > 0
    return replace(data, train=(x[is_kept], y[is_kept]))
