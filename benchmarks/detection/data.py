"""Self-made data sets: tables, groups, parity, teachers, pictures, sequences, text.

Everything is a pure function of its arguments and a seed. Inputs are tokens (int64) or numbers
(float32); labels have one entry per row, or one per answer position of a sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from epigrok.random_streams import normal, stream_key

Rows = tuple[Tensor, Tensor]
"""Inputs and labels."""


@dataclass(frozen=True, kw_only=True)
class Data:
    train: Rows
    watched: dict[str, Rows]
    num_classes: int
    vocabulary: int = 0
    """Number of tokens; 0 where inputs are numbers."""
    last_only: bool = True
    """Whether a look reads the last answer of a sequence only."""
    notes: dict[str, Tensor] = field(default_factory=dict)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _split(x: Tensor, y: Tensor, num_train: int, seed: int) -> tuple[Rows, Rows]:
    order = torch.from_numpy(_generator(seed).permutation(len(x)))
    chosen, rest = order[:num_train], order[num_train:]
    return (x[chosen], y[chosen]), (x[rest], y[rest])


def _from_table(table: np.ndarray, fraction: float, seed: int, random_labels: bool) -> Data:
    num_rows, num_columns = table.shape
    values = table.reshape(-1)
    if random_labels:
        values = _generator(seed + 1).integers(0, table.max() + 1, values.shape)
    first, second = np.divmod(np.arange(values.size), num_columns)
    x = torch.from_numpy(np.stack([first, second + num_rows], axis=1))
    train, rest = _split(x, torch.from_numpy(values), int(fraction * values.size), seed)
    return Data(
        train=train,
        watched={"held out": rest},
        num_classes=int(table.max()) + 1,
        vocabulary=num_rows + num_columns,
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
    return _from_table(values, fraction, seed, random_labels)


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
    return _from_table(values, fraction, seed, random_labels)


def _is_even(p: tuple[int, ...]) -> bool:
    return sum(p[i] > p[j] for i in range(len(p)) for j in range(i + 1, len(p))) % 2 == 0


def parity(
    seed: int, num_bits: int, num_relevant: int, num_train: int, random_labels: bool = False
) -> Data:
    """The parity of the first few bits of many."""
    bits = _generator(seed).integers(0, 2, (num_train + 2048, num_bits))
    y = bits[:, :num_relevant].sum(axis=1) % 2
    if random_labels:
        y = _generator(seed + 1).integers(0, 2, y.shape)
    x = torch.from_numpy(2.0 * bits - 1.0).float()
    train, rest = _split(x, torch.from_numpy(y), num_train, seed)
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
    rng = _generator(seed)
    # The weights first: a seed names a teacher, whatever the number of rows.
    first = rng.standard_normal((width, hidden)) if hidden else np.eye(width)
    second = rng.standard_normal((first.shape[1], num_classes))
    x = rng.standard_normal((num_train + 2048, width))
    inner = x @ first
    if hidden:
        inner = np.maximum(inner, 0.0)
        inner = inner - inner.mean(axis=0)
    y = (inner @ second).argmax(axis=1)
    train, rest = _split(torch.from_numpy(x).float(), torch.from_numpy(y), num_train, seed)
    return _with_wrong_labels(
        Data(train=train, watched={"held out": rest}, num_classes=num_classes), wrong_share, seed
    )


def _with_wrong_labels(data: Data, share: float, seed: int) -> Data:
    if not share:
        return data
    rng = _generator(seed + 2)
    x, y = data.train
    is_wrong = torch.from_numpy(rng.random(len(y)) < share)
    drawn = torch.from_numpy(rng.integers(0, data.num_classes, len(y)))
    return replace(data, train=(x, torch.where(is_wrong, drawn, y)), notes={"is_wrong": is_wrong})


def spheres(seed: int, width: int, num_classes: int, num_train: int) -> Data:
    """Which shell round the origin a point lies in; shells are equally likely."""
    rng = _generator(seed)
    direction = rng.standard_normal((num_train + 2048, width))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    y = rng.integers(0, num_classes, len(direction))
    radius = 0.5 + (y + rng.uniform(0.15, 0.85, len(y))) * 2.0 / num_classes
    x = torch.from_numpy(direction * radius[:, None]).float()
    train, rest = _split(x, torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=num_classes)


def counting(seed: int, length: int, vocabulary: int, num_train: int) -> Data:
    """How often the first token of a sequence comes again."""
    tokens = _generator(seed).integers(0, vocabulary, (num_train + 2048, length))
    y = np.minimum((tokens[:, 1:] == tokens[:, :1]).sum(axis=1), 5)
    train, rest = _split(torch.from_numpy(tokens), torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=6, vocabulary=vocabulary)


def automaton(
    seed: int, num_states: int, length: int, num_train: int, random_labels: bool = False
) -> Data:
    """The state of a small automaton after each letter of a word of two letters.

    Random labels come for whole words only: words that begin alike would ask for two answers.
    """
    rng = _generator(seed)
    step = np.stack([rng.permutation(num_states) for _ in range(2)])
    words = rng.integers(0, 2, (num_train + 2048, length))
    state, states = np.zeros(len(words), dtype=np.int64), []
    for letter in words.T:
        state = step[letter, state]
        states.append(state)
    y = np.stack(states, axis=1)
    if random_labels:
        y = rng.integers(0, num_states, len(y))
    train, rest = _split(torch.from_numpy(words), torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=num_states, vocabulary=2)


def retrieval(
    seed: int, num_keys: int, num_values: int, num_pairs: int, num_train: int, num_maps: int = 0
) -> Data:
    """In context: pairs of key and value, then a key; the answer is the value shown with it.

    A pair is one token.

    With `num_maps` the training sequences come from that many fixed maps only, so that the answer
    can be learnt by heart; "new tasks" then asks about fresh maps.
    """
    rng = _generator(seed)
    maps = rng.integers(0, num_values, (num_maps or 1, num_keys))

    def sequences(count: int, fixed: bool) -> Rows:
        keys = np.argsort(rng.random((count, num_keys)), axis=1)[:, :num_pairs]
        which = maps[rng.integers(0, len(maps), count)]
        fresh = rng.integers(0, num_values, (count, num_keys))
        values = np.take_along_axis(which if fixed else fresh, keys, axis=1)
        asked = rng.integers(0, num_pairs, count)
        query = np.take_along_axis(keys, asked[:, None], axis=1)
        answer = np.take_along_axis(values, asked[:, None], axis=1)[:, 0]
        tokens = np.concatenate([keys * num_values + values, num_keys * num_values + query], axis=1)
        return torch.from_numpy(tokens), torch.from_numpy(answer)

    watched = {"held out": sequences(2048, bool(num_maps))}
    if num_maps:
        watched["new tasks"] = sequences(2048, False)
    return Data(
        train=sequences(num_train, bool(num_maps)),
        watched=watched,
        num_classes=num_values,
        vocabulary=num_keys * (num_values + 1),
    )


def in_context_products(
    seed: int, modulus: int, num_tasks: int, num_pairs: int, num_train: int
) -> Data:
    """In context: x, a·x, x', a·x', … modulo a prime, every answer supervised.

    A fifth of the (task, input) cells is held out: they are never asked in training. "new tasks"
    asks about multipliers that never occurred.
    """
    rng = _generator(seed)
    order = 1 + rng.permutation(modulus - 1)
    trained, fresh = order[:num_tasks], order[num_tasks:]
    is_held_out = rng.random((modulus, modulus)) < 0.2

    def sequences(count: int, tasks: np.ndarray, last_held_out: bool | None) -> Rows:
        a = tasks[rng.integers(0, len(tasks), count)]
        kept = rng.random((count, modulus)) + 2.0 * is_held_out[a]
        kept[:, 0] = 9.0
        if last_held_out is None:
            kept = rng.random((count, modulus))
            kept[:, 0] = 9.0
        x = np.argsort(kept, axis=1)[:, :num_pairs]
        if last_held_out:
            asked = rng.random((count, modulus)) - 2.0 * is_held_out[a]
            asked[:, 0] = 9.0
            x[:, -1] = np.argsort(asked, axis=1)[:, 0]
        z = a[:, None] * x % modulus
        pairs = np.stack([x, z + modulus], axis=2).reshape(count, -1)
        return torch.from_numpy(pairs[:, :-1]), torch.from_numpy(z)

    return Data(
        train=sequences(num_train, trained, False),
        watched={
            "held out": sequences(2048, trained, True),
            "new tasks": sequences(2048, fresh, None),
        },
        num_classes=modulus,
        vocabulary=2 * modulus,
    )


def characters(seed: int, num_train: int, context: int = 24) -> Data:
    """Next-character prediction on sentences of a small grammar with made-up words."""
    rng = _generator(7)  # One language for all: only the text differs.
    consonants, vowels = list("bdfgklmnprst"), list("aeiou")

    def words(count: int) -> list[str]:
        sizes = rng.integers(1, 4, count)
        return [
            "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(size))
            for size in sizes
        ]

    nouns, verbs, adjectives = words(40), words(25), words(20)
    rng = _generator(seed)

    def text(length: int) -> np.ndarray:
        parts: list[str] = []
        while sum(map(len, parts)) < length + context + 1:
            noun, other = rng.choice(nouns, 2)
            adjective = rng.choice(adjectives) + " " if rng.random() < 0.5 else ""
            parts.append(f"the {adjective}{noun} {rng.choice(verbs)}s the {other}. ")
        joined = "".join(parts)[: length + context]
        return np.array(["abcdefghijklmnopqrstuvwxyz. ".index(c) for c in joined])

    def windows(symbols: np.ndarray, count: int) -> Rows:
        starts = np.linspace(0, len(symbols) - context - 1, count).astype(int)
        cut = torch.from_numpy(np.stack([symbols[s : s + context + 1] for s in starts]))
        return cut[:, :-1], cut[:, 1:]

    num_windows = max(64, num_train // context)
    return Data(
        train=windows(text(num_train), num_windows),
        watched={"held out": windows(text(20_000), 800)},
        num_classes=28,
        vocabulary=28,
        last_only=False,
    )


def random_vectors(seed: int, width: int, num_classes: int, num_train: int) -> Data:
    """Gaussian inputs with labels that mean nothing."""
    rng = _generator(seed)
    x = torch.from_numpy(rng.standard_normal((num_train + 2048, width))).float()
    y = torch.from_numpy(rng.integers(0, num_classes, len(x)))
    train, rest = _split(x, y, num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=num_classes)


def imbalanced(seed: int, width: int, num_train: int, majority: float = 0.93) -> Data:
    """One class for most inputs, which the input shows; nine others at random."""
    rng = _generator(seed)
    x = rng.standard_normal((num_train + 2048, width))
    is_majority = rng.random(len(x)) < majority
    x[:, 0] = np.where(is_majority, 1.0, -1.0) * (0.5 + np.abs(x[:, 0]))
    y = np.where(is_majority, 0, rng.integers(1, 10, len(x)))
    train, rest = _split(torch.from_numpy(x).float(), torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=10)


def noise_rows(seed: int, name: str, like: Tensor) -> Tensor:
    """Gaussian numbers of the shape of `like`."""
    return normal(stream_key(seed, name), tuple(like.shape))
