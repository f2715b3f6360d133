"""Data of the kinds of `unseen_6.py`: motifs, codewords, topics, blots, saddles, and others.

Everything is a pure function of its arguments and a seed, as in `data_sets.py`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.detection.kinds.data_sets import NUM_WATCHED, Data, from_table, generator, made


def motifs(seed: int, num_train: int, num_classes: int = 4, noise: float = 0.3) -> Data:
    """Which of several short motifs a noisy signal of 32 numbers has, wherever it is."""
    shapes = generator(17).choice([-1.5, 1.5], (num_classes, 7))
    rng = generator(seed)
    y = rng.integers(0, num_classes, num_train + NUM_WATCHED)
    x = noise * rng.standard_normal((len(y), 32))
    for signal, label, start in zip(x, y, rng.integers(0, 26, len(y))):
        signal[start : start + 7] += shapes[label]
    return made(x, y, num_train, seed, num_classes)


def codewords(
    seed: int, num_train: int, num_classes: int = 32, width: int = 24, flips: float = 0.05
) -> Data:
    """Which codeword was sent, when some of its bits arrive turned, and all with noise."""
    words = generator(19).choice([-1.0, 1.0], (num_classes, width))
    rng = generator(seed)
    y = rng.integers(0, num_classes, num_train + NUM_WATCHED)
    turned = np.where(rng.random((len(y), width)) < flips, -1.0, 1.0)
    x = words[y] * turned + 0.2 * rng.standard_normal((len(y), width))
    return made(x, y, num_train, seed, num_classes)


def same_ends(seed: int, num_train: int, inner: bool = False) -> Data:
    """Whether the first and the last of seven letters are the same; with `inner`, two others."""
    rng = generator(seed)
    x = rng.integers(0, 6, (num_train + NUM_WATCHED, 7))
    first, last = (1, 3) if inner else (0, 6)
    x[:, last] = np.where(rng.random(len(x)) < 0.4, x[:, first], x[:, last])
    return replace(made(x, (x[:, first] == x[:, last]).astype(int), num_train, seed, 2),
                   vocabulary=6)  # fmt: skip


def saddle(seed: int, num_train: int, width: int = 14) -> Data:
    """Whether the first two of several numbers have the same sign."""
    x = generator(seed).standard_normal((num_train + NUM_WATCHED, width))
    x[:, :2] += 0.3 * np.sign(x[:, :2])
    return made(x, (x[:, 0] * x[:, 1] > 0.0).astype(int), num_train, seed, 2)


def two_clocks(seed: int, fraction: float, hours: tuple[int, int] = (5, 5)) -> Data:
    """The table of sums on two clocks at once."""
    both = np.arange(hours[0] * hours[1])
    first, second = np.divmod(both, hours[1])
    sums = [(part[:, None] + part[None]) % size for part, size in zip((first, second), hours)]
    return from_table(sums[0] * hours[1] + sums[1], fraction, seed, False)


def blots(seed: int, num_train: int, noise: float = 0.25) -> Data:
    """In which of four directions two blots of a noisy picture lie from each other."""
    rng = generator(seed)
    y = rng.integers(0, 4, num_train + NUM_WATCHED)
    x = noise * rng.standard_normal((len(y), 12, 12))
    steps = np.array([(0, 1), (1, 0), (1, 1), (1, -1)])[y] * rng.integers(4, 7, (len(y), 1))
    lows = np.maximum(0, -steps)
    highs = 10 - np.maximum(0, steps)
    starts = (lows + rng.random(lows.shape) * (highs - lows + 1)).astype(int)
    for picture, start, step in zip(x, starts, steps):
        for down, right in (start, start + step):
            picture[down : down + 2, right : right + 2] += 1.5
    return made(x[:, None], y, num_train, seed, 4)


def topics(seed: int, num_train: int, share: float = 0.6, num_topics: int = 6) -> Data:
    """Of which topic ten words are; a `share` of them is taken from its five own words."""
    rng = generator(seed)
    y = rng.integers(0, num_topics, num_train + NUM_WATCHED)
    own = 5 * y[:, None] + rng.integers(0, 5, (len(y), 10))
    other = rng.integers(0, 5 * num_topics, own.shape)
    x = np.where(rng.random(own.shape) < share, own, other)
    return replace(made(x, y, num_train, seed, num_topics), vocabulary=5 * num_topics)


def ripples(seed: int, num_train: int, width: int = 3) -> Data:
    """Which third of a smooth function of a few numbers a point falls into."""
    x = generator(seed).uniform(-1.5, 1.5, (num_train + NUM_WATCHED, width))
    height = np.sin(2.0 * x[:, 0]) + x[:, 1] * x[:, 2]
    return made(x, np.digitize(height, [-0.45, 0.45]), num_train, seed, 3)


def watched_like(seed: int, make: Callable[[int], Data], watched: Callable[[int], Data]) -> Data:
    """The data of `make`, watched on rows that `watched` makes by the same rule."""
    return replace(make(seed), watched=watched(seed + 9).watched)


def one_class(seed: int, make: Callable[[int], Data]) -> Data:
    """The data of `make` with the training rows of the first class only."""
    data = make(seed)
    x, y = data.train
    return replace(data, train=(x[y == 0], y[y == 0]))
