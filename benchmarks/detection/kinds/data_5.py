"""Data of `unseen_5.py`: weather, trees, clocks, doubled letters, comparisons, two clouds.

Everything is a pure function of its arguments and a seed, as in `data_sets.py`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from benchmarks.detection.kinds.data_sets import NUM_WATCHED, Data, generator, made

CLOCK_SIDE = 12


def weather(seed: int, num_train: int) -> Data:
    """Three kinds of weather from eight readings, half of them in units four times as large."""
    rng = generator(seed)
    x = rng.standard_normal((num_train + NUM_WATCHED, 8))
    wet, wind = x[:, 0] + 0.5 * x[:, 1] * x[:, 2], x[:, 3] - x[:, 4]
    y = np.where(wet < -0.4, 0, np.where(wind < 0.0, 1, 2))
    return made(x * np.repeat([0.5, 2.0], 4), y, num_train, seed, 3)


def tree(seed: int, num_train: int, num_inputs: int = 6) -> Data:
    """Four leaves of a decision tree of depth three, over numbers between -1 and 1."""
    x = generator(seed).uniform(-1.0, 1.0, (num_train + NUM_WATCHED, num_inputs))
    left = np.where(x[:, 1] > 0.2, 0, np.where(x[:, 2] > 0.0, 1, 2))
    right = np.where(x[:, 2] > -0.3, 3, np.where(x[:, 3] > 0.0, 0, 1))
    return made(x, np.where(x[:, 0] > 0.0, left, right), num_train, seed, 4)


def clock(seed: int, num_train: int, num_sectors: int = 6, noise: float = 0.25) -> Data:
    """Pictures of a hand from the middle: the sector in which it points."""
    rng = generator(seed)
    count = num_train + NUM_WATCHED
    y = rng.integers(0, num_sectors, count)
    turn = (y + rng.uniform(0.1, 0.9, count)) * 2.0 * np.pi / num_sectors
    place = np.arange(CLOCK_SIDE) - (CLOCK_SIDE - 1) / 2.0
    across = place[None, None, :] * np.cos(turn)[:, None, None]
    along = across + place[None, :, None] * np.sin(turn)[:, None, None]
    beside = (
        place[None, :, None] * np.cos(turn)[:, None, None]
        - place[None, None, :] * np.sin(turn)[:, None, None]
    )
    x = ((np.abs(beside) < 0.9) & (along > 0.0)).astype(float)
    x = x + noise * rng.standard_normal(x.shape)
    return made(x[:, None], y, num_train, seed, num_sectors)


def doubled(seed: int, num_train: int, length: int = 8, letters: int = 12) -> Data:
    """Whether some letter stands twice in a row."""
    rng = generator(seed)
    x = rng.integers(0, letters, (4 * (num_train + NUM_WATCHED), length))
    has_pair = (x[:, 1:] == x[:, :-1]).any(axis=1)
    pairs, none = x[has_pair], x[~has_pair]
    half = (num_train + NUM_WATCHED) // 2
    rows = np.concatenate([pairs[:half], none[:half]])
    y = np.repeat([1, 0], [len(pairs[:half]), len(none[:half])])
    return replace(made(rows, y, num_train, seed, 2), vocabulary=letters)


def comparison(seed: int, num_train: int) -> Data:
    """Which of two numbers of three digits is larger."""
    x = generator(seed).integers(0, 10, (num_train + NUM_WATCHED, 6))
    first, second = (x[:, part] @ [100, 10, 1] for part in (slice(0, 3), slice(3, 6)))
    return replace(made(x, (first > second).astype(int), num_train, seed, 2), vocabulary=10)


def clouds(
    seed: int, num_train: int, width: int = 20, distance: float = 4.0, num_classes: int = 2
) -> Data:
    """One round cloud for each class, some way apart."""
    centres = generator(11).standard_normal((num_classes, width))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    rng = generator(seed)
    y = rng.integers(0, num_classes, num_train + NUM_WATCHED)
    x = centres[y] + rng.standard_normal((len(y), width))
    return made(x, y, num_train, seed, num_classes)


def linear_rule(seed: int, num_train: int, width: int = 15, share: float = 0.5) -> Data:
    """On which side of a plane a point lies; `share` of the points on one side."""
    rng = generator(seed)
    x = rng.standard_normal((num_train + NUM_WATCHED, width))
    along = x @ generator(13).standard_normal(width)
    return made(x, (along > np.quantile(along, 1.0 - share)).astype(int), num_train, seed, 2)


def core_watched(seed: int, make: Callable[[int], Data]) -> Data:
    """The data of `make`, watched only where points lie close to the middle of all points."""
    data = make(seed)
    x, y = data.watched["held out"]
    distance = (x - x.mean(dim=0)).flatten(1).norm(dim=1)
    is_core = distance < distance.median()
    return replace(data, watched={"held out": (x[is_core], y[is_core])})


def jittered(seed: int, make: Callable[[int], Data], copies: int = 4) -> Data:
    """The data of `make` with each training row several times, a little moved."""
    data = make(seed)
    x, y = data.train
    rng = torch.Generator().manual_seed(seed + 5)
    moved = x.repeat(copies, *[1] * (x.ndim - 1))
    return replace(data, train=(moved + 0.02 * torch.randn(moved.shape, generator=rng),
                                y.repeat(copies)))  # fmt: skip
