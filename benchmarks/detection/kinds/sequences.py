"""Self-made sequences: counting, automata, two in-context families, and text."""

import numpy as np
import torch

from benchmarks.detection.kinds.data_sets import Data, Rows, generator, split


def counting(seed: int, length: int, vocabulary: int, num_train: int) -> Data:
    """How often the first token of a sequence comes again."""
    tokens = generator(seed).integers(0, vocabulary, (num_train + 2048, length))
    y = np.minimum((tokens[:, 1:] == tokens[:, :1]).sum(axis=1), 5)
    train, rest = split(torch.from_numpy(tokens), torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=6, vocabulary=vocabulary)


def automaton(
    seed: int, num_states: int, length: int, num_train: int, random_labels: bool = False
) -> Data:
    """The state of a small automaton after each letter of a word of two letters.

    Random labels come for whole words only: words that begin alike would ask for two answers.
    """
    rng = generator(seed)
    step = np.stack([rng.permutation(num_states) for _ in range(2)])
    words = rng.integers(0, 2, (num_train + 2048, length))
    state, states = np.zeros(len(words), dtype=np.int64), []
    for letter in words.T:
        state = step[letter, state]
        states.append(state)
    y = np.stack(states, axis=1)
    if random_labels:
        y = rng.integers(0, num_states, len(y))
    train, rest = split(torch.from_numpy(words), torch.from_numpy(y), num_train, seed)
    return Data(train=train, watched={"held out": rest}, num_classes=num_states, vocabulary=2)


def retrieval(
    seed: int, num_keys: int, num_values: int, num_pairs: int, num_train: int, num_maps: int = 0
) -> Data:
    """In context: pairs of key and value, then a key; the answer is the value shown with it.

    A pair is one token.

    With `num_maps` the training sequences come from that many fixed maps only, so that the answer
    can be learnt by heart; "new tasks" then asks about fresh maps.
    """
    rng = generator(seed)
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
    rng = generator(seed)
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
    rng = generator(7)  # One language for all: only the text differs.
    consonants, vowels = list("bdfgklmnprst"), list("aeiou")

    def words(count: int) -> list[str]:
        sizes = rng.integers(1, 4, count)
        return [
            "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(size))
            for size in sizes
        ]

    nouns, verbs, adjectives = words(40), words(25), words(20)
    rng = generator(seed)

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
