"""Data of `unseen_4.py`: signals, orders of numbers, boards, pointers, brackets, spots.

Everything is a pure function of its arguments and a seed, as in `data_sets.py`.
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import torch

from benchmarks.detection.kinds.data_sets import NUM_WATCHED, Data, from_table, generator, made


def blobs(seed: int, num_train: int, width: int = 10, num_classes: int = 5) -> Data:
    """Which class's cloud a point lies in; each class has three clouds at fixed places."""
    centres = generator(7).standard_normal((num_classes, 3, width))
    rng = generator(seed)
    y = rng.integers(0, num_classes, num_train + NUM_WATCHED)
    x = centres[y, rng.integers(0, 3, len(y))] + 0.35 * rng.standard_normal((len(y), width))
    return made(x, y, num_train, seed, num_classes)


def signals(seed: int, num_train: int, asks: str = "shape", noise: float = 0.15) -> Data:
    """The shape of a periodic signal (sine, square, saw, spikes), or how fast it is (four ranges).

    The first number says what is asked.
    """
    rng = generator(seed)
    count = num_train + NUM_WATCHED
    shape, speed = rng.integers(0, 4, count), rng.integers(0, 4, count)
    turns = (1.0 + speed + rng.uniform(0.0, 0.6, count))[:, None]
    phase = (turns * np.linspace(0.0, 1.0, 32)[None] + rng.random((count, 1))) % 1.0
    drawn = np.stack(
        [
            np.sin(2.0 * np.pi * phase),
            np.where(phase < 0.5, 1.0, -1.0),
            2.0 * phase - 1.0,
            np.where(phase < 0.2, 2.0, -0.5),
        ]
    )
    x = drawn[shape, np.arange(count)] + noise * rng.standard_normal((count, 32))
    flag = np.full((count, 1), 1.0 if asks == "shape" else -1.0)
    y = shape if asks == "shape" else speed
    return made(np.hstack([flag, x]), y, num_train, seed, 4)


def both_questions(seed: int, num_train: int, trained: tuple[str, ...]) -> Data:
    """Both questions about signals are watched; those in `trained` are trained on."""
    parts = {asks: signals(seed + i, num_train, asks) for i, asks in enumerate(("shape", "speed"))}
    rows = [parts[asks].train for asks in trained]
    train = tuple(torch.cat(part) for part in zip(*rows))
    watched = {asks: part.watched["held out"] for asks, part in parts.items()}
    return Data(train=train, watched=watched, num_classes=4)


def order_of_three(seed: int, num_train: int, shift: float = 0.0, turned: bool = False) -> Data:
    """In which of six orders three numbers are, among four more that do not count.

    `shift` moves all inputs elsewhere; `turned` gives the orders other names.
    """
    x = generator(seed).uniform(-1.0, 1.0, (num_train + NUM_WATCHED, 7))
    number = {order: i for i, order in enumerate(permutations(range(3)))}
    y = np.array([number[tuple(row)] for row in np.argsort(x[:, :3], axis=1)])
    return made(2.0 * x + shift, (y + 2) % 6 if turned else y, num_train, seed, 6)


def board(seed: int, num_train: int, cells: int = 3) -> Data:
    """The colour, one of three, of the cell of a board that a point lies in."""
    x = generator(seed).uniform(0.0, 1.0, (num_train + NUM_WATCHED, 2))
    down, right = np.floor(cells * x).astype(int).T
    return made(4.0 * x - 2.0, (down + 2 * right) % 3, num_train, seed, 3)


def pointer(seed: int, num_train: int, length: int = 6, first: bool = False) -> Data:
    """The letter at the place that the last token names; with `first`, always the first letter."""
    rng = generator(seed)
    letters = rng.integers(0, 8, (num_train + NUM_WATCHED, length))
    place = rng.integers(0, length, len(letters))
    y = letters[np.arange(len(letters)), 0 if first else place]
    tokens = np.column_stack([letters, 8 + place])
    return replace(made(tokens, y, num_train, seed, 8), vocabulary=8 + length)


def brackets(seed: int, num_train: int, length: int = 14) -> Data:
    """How deep brackets are nested at most, one to four, with closing ones where none is open."""
    rng = generator(seed)
    tokens = rng.integers(0, 2, (6 * (num_train + NUM_WATCHED), length))
    depth, deepest = np.zeros(len(tokens), int), np.zeros(len(tokens), int)
    for token in tokens.T:
        depth = np.maximum(depth + np.where(token == 1, 1, -1), 0)
        deepest = np.maximum(deepest, depth)
    each = (num_train + NUM_WATCHED) // 4
    places = [np.flatnonzero(np.clip(deepest, 2, 5) == d)[:each] for d in range(2, 6)]
    kept = rng.permutation(np.concatenate(places))
    y = np.clip(deepest[kept], 2, 5) - 2
    return replace(made(tokens[kept], y, num_train, seed, 4), vocabulary=2)


def spot(seed: int, num_train: int, only: tuple[int, ...] = ()) -> Data:
    """In which of nine parts of a noisy picture a bright spot lies.

    `only` keeps some of them for training, each under the next one's name; held-out rows are of
    all parts, under their own.
    """
    rng = generator(seed)
    count = (num_train if not only else 9 * num_train) + NUM_WATCHED
    y = rng.integers(0, 9, count)
    x = 0.3 * rng.standard_normal((count, 12, 12))
    downs, rights = (
        4 * (y // 3) + rng.integers(0, 3, count),
        4 * (y % 3) + rng.integers(0, 3, count),
    )
    for picture, down, right in zip(x, downs, rights):
        picture[down : down + 2, right : right + 2] += 1.5
    data = made(x[:, None], y, count - NUM_WATCHED, seed, 9)
    if only:
        inputs, labels = data.train
        chosen = torch.isin(labels, torch.tensor(only)).nonzero()[:num_train, 0]
        data = replace(data, train=(inputs[chosen], (labels[chosen] + 1) % 9))
    return data


def exclusive_or(
    seed: int, fraction: float, num_bits: int = 5, random_labels: bool = False
) -> Data:
    """The table of a XOR b over numbers of a few bits."""
    numbers = np.arange(2**num_bits)
    return from_table(numbers[:, None] ^ numbers[None], fraction, seed, random_labels)
