"""Data of the kinds of `unseen_3.py`: numbers, strings, graphs, an affine group, gratings and dots.

Everything is a pure function of its arguments and a seed, as in `data_sets.py`.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import torch

from benchmarks.detection.kinds.data_sets import (
    NUM_WATCHED,
    Data,
    from_table,
    generator,
    made,
    with_wrong_labels,
)


def affine_group(seed: int, prime: int, fraction: float, random_labels: bool = False) -> Data:
    """Composition of the maps x → ax + b modulo a prime."""
    maps = list(product(range(1, prime), range(prime)))
    number = {each: i for i, each in enumerate(maps)}
    table = np.array(
        [[number[a * c % prime, (a * d + b) % prime] for c, d in maps] for a, b in maps]
    )
    return from_table(table, fraction, seed, random_labels)


def parity_with_decoys(seed: int, num_bits: int, num_train: int) -> Data:
    """The parity of two bits; three more bits agree with it in 60 % of rows, here as there."""
    rng = generator(seed)
    bits = rng.integers(0, 2, (num_train + NUM_WATCHED, num_bits))
    y = bits[:, 0] ^ bits[:, 1]
    tells = rng.random((len(bits), 3)) < 0.6
    bits[:, 2:5] = np.where(tells, y[:, None], 1 - y[:, None])
    return made(2.0 * bits - 1.0, y, num_train, seed, 2)


def largest(seed: int, length: int, num_train: int) -> Data:
    """Which of several numbers is the largest."""
    x = generator(seed).standard_normal((num_train + NUM_WATCHED, length))
    return made(x, x.argmax(axis=1), num_train, seed, length)


def rank_of_first(seed: int, length: int, num_train: int) -> Data:
    """How many of several numbers are below the first one, evenly spread."""
    rng = generator(seed)
    x = rng.uniform(-1.0, 1.0, (num_train + NUM_WATCHED, length))
    y = (x[:, 1:] < x[:, :1]).sum(axis=1)
    return made(2.0 * x, y, num_train, seed, length)


def polynomial(
    seed: int, num_train: int, num_classes: int = 5, wrong_share: float = 0.0, far: bool = False
) -> Data:
    """A cubic of three inputs, cut into classes of equal size.

    With `far` a second watched set has inputs of twice the size, where the network was never
    trained.
    """
    rng = generator(seed)
    weights = rng.standard_normal(20)

    def values(x: np.ndarray) -> np.ndarray:
        powers = [
            (x ** np.array(p)).prod(axis=1) for p in product(range(4), repeat=3) if sum(p) < 4
        ]
        return np.stack(powers, axis=1) @ weights

    x = rng.uniform(-1.0, 1.0, (num_train + NUM_WATCHED, 3))
    edges = np.quantile(
        values(rng.uniform(-1.0, 1.0, (20_000, 3))), np.arange(1, num_classes) / num_classes
    )
    data = made(2.0 * x, np.searchsorted(edges, values(x)), num_train, seed, num_classes)
    if far:
        beyond = rng.uniform(1.0, 2.0, (NUM_WATCHED, 3)) * rng.choice([-1.0, 1.0], (NUM_WATCHED, 3))
        labels = torch.from_numpy(np.searchsorted(edges, values(beyond)).astype(np.int64))
        far_rows = (torch.from_numpy(2.0 * beyond).float(), labels)
        data = replace(data, watched={**data.watched, "far out": far_rows})
    return with_wrong_labels(data, wrong_share, seed)


def spirals(seed: int, num_train: int, num_arms: int = 3, turns: float = 1.0) -> Data:
    """Which arm of a spiral a point lies on."""
    rng = generator(seed)
    y = rng.integers(0, num_arms, num_train + NUM_WATCHED)
    along = rng.uniform(0.15, 1.0, len(y))
    angle = 2.0 * np.pi * (turns * along + y / num_arms) + 0.15 * rng.standard_normal(len(y))
    x = 2.0 * along[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return made(x, y, num_train, seed, num_arms)


def interval(seed: int, num_train: int, rare: float = 0.0) -> Data:
    """Whether a number lies below, inside or above an interval; with `rare`, seldom outside."""
    rng = generator(seed)
    count = num_train + NUM_WATCHED
    ends = np.sort(rng.uniform(-1.0, 1.0, (count, 2)), axis=1)
    y = rng.integers(0, 3, count)
    if rare:
        y = rng.choice(3, count, p=[rare, 1.0 - 2.0 * rare, rare])
    low = np.stack([np.full(count, -1.5), ends[:, 0], ends[:, 1]])[y, np.arange(count)]
    high = np.stack([ends[:, 0], ends[:, 1], np.full(count, 1.5)])[y, np.arange(count)]
    asked = low + (high - low) * rng.random(count)
    return made(2.0 * np.column_stack([ends, asked]), y, num_train, seed, 3)


def rare_at_random(seed: int, num_train: int, majority: float) -> Data:
    """One class for most inputs, shown by their length; five others at random."""
    rng = generator(seed)
    x = rng.standard_normal((num_train + NUM_WATCHED, 16))
    is_majority = rng.random(len(x)) < majority
    x *= np.where(is_majority, 0.7, 1.8)[:, None]
    y = np.where(is_majority, 0, rng.integers(1, 6, len(x)))
    return made(x, y, num_train, seed, 6)


def contains(seed: int, length: int, num_train: int) -> Data:
    """Whether the word 2 0 1 occurs in a string of three letters; half of the strings have it."""
    rng = generator(seed)
    strings = rng.integers(0, 3, (8 * (num_train + NUM_WATCHED), length))
    places = np.lib.stride_tricks.sliding_window_view(strings, 3, axis=1)
    has = (places == np.array([2, 0, 1])).all(axis=2).any(axis=1)
    half = (num_train + NUM_WATCHED) // 2
    kept = np.concatenate([np.flatnonzero(has)[:half], np.flatnonzero(~has)[:half]])
    kept = rng.permutation(kept)
    return replace(made(strings[kept], has[kept], num_train, seed, 2), vocabulary=3)


def majority_letter(seed: int, length: int, num_train: int) -> Data:
    """Which of three letters is the most frequent; ties are left out."""
    rng = generator(seed)
    strings = rng.integers(0, 3, (2 * (num_train + NUM_WATCHED), length))
    counts = np.stack([(strings == letter).sum(axis=1) for letter in range(3)], axis=1)
    top = np.sort(counts, axis=1)
    kept = np.flatnonzero(top[:, 2] > top[:, 1])[: num_train + NUM_WATCHED]
    data = made(strings[kept], counts[kept].argmax(axis=1), num_train, seed, 3)
    return replace(data, vocabulary=3)


def connected(seed: int, num_nodes: int, num_train: int) -> Data:
    """Whether the first two nodes of a graph are connected, never directly, from its edges."""
    rng = generator(seed)
    above = np.triu_indices(num_nodes, 1)
    edges = rng.random((3 * (num_train + NUM_WATCHED), len(above[0]))) < 1.8 / num_nodes
    edges[:, 0] = False
    matrix = np.zeros((len(edges), num_nodes, num_nodes))
    matrix[:, above[0], above[1]] = edges
    reach = np.eye(num_nodes) + matrix + matrix.transpose(0, 2, 1)
    for _ in range(3):
        reach = np.minimum(reach @ reach, 1.0)
    y = reach[:, 0, 1] > 0
    half = (num_train + NUM_WATCHED) // 2
    kept = rng.permutation(np.concatenate([np.flatnonzero(y)[:half], np.flatnonzero(~y)[:half]]))
    return made(2.0 * edges[kept] - 1.0, y[kept], num_train, seed, 2)


def gratings(seed: int, num_train: int, noise: float = 0.4, watched: str = "held out") -> Data:
    """The direction of a wave, one of six; "noisy" watches pictures with four times the noise."""
    rng = generator(seed)
    y = rng.integers(0, 6, num_train + NUM_WATCHED)
    down, right = np.mgrid[:12, :12]
    angle = (np.pi * y / 6)[:, None, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, (len(y), 1, 1))
    pitch = rng.uniform(0.8, 1.2, (len(y), 1, 1))
    wave = np.sin(pitch * (np.cos(angle) * right + np.sin(angle) * down) + phase)
    scale = np.full((len(y), 1, 1), noise)
    if watched == "noisy":
        scale[num_train:] *= 4.0
    x = wave + scale * rng.standard_normal(wave.shape)
    return _cut(x, y, num_train, 6, watched)


def dots(seed: int, num_train: int, watched: str = "held out") -> Data:
    """How many dots a picture shows, one to five.

    "shortcut": in training one pixel's brightness tells the number; on the watched set it is
    random.
    """
    rng = generator(seed)
    y = rng.integers(0, 5, num_train + NUM_WATCHED)
    x = 0.1 * rng.standard_normal((len(y), 12, 12))
    cells = np.argsort(rng.random((len(y), 16)), axis=1)
    for picture, number, order in zip(x, y, cells):
        for cell in order[: number + 1]:
            down, right = 3 * (cell // 4), 3 * (cell % 4)
            picture[down : down + 2, right : right + 2] += rng.uniform(0.8, 1.2)
    if watched == "shortcut":
        told = np.concatenate([y[:num_train], rng.integers(0, 5, NUM_WATCHED)])
        x[:, 11, :] = 0.0
        x[np.arange(len(y)), 11, 2 * told] = 4.0
    return _cut(x, y, num_train, 5, watched)


def _cut(x: np.ndarray, y: np.ndarray, num_train: int, num_classes: int, watched: str) -> Data:
    """The first rows for training, the others watched: they may differ in kind."""
    inputs, labels = torch.from_numpy(x).float()[:, None], torch.from_numpy(y.astype(np.int64))
    return Data(
        train=(inputs[:num_train], labels[:num_train]),
        watched={watched: (inputs[num_train:], labels[num_train:])},
        num_classes=num_classes,
    )
