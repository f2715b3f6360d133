"""Scores of a statistic over looks, with intervals by drawing runs again."""

from collections.abc import Callable

import numpy as np

Score = Callable[[np.ndarray], float]


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[inverse]


def auroc(score: np.ndarray, is_positive: np.ndarray) -> float:
    """Chance that a positive scores above a negative, half for a tie."""
    num_positive = int(is_positive.sum())
    num_negative = len(is_positive) - num_positive
    if not num_positive or not num_negative:
        return float("nan")
    below = ranks(score)[is_positive].sum() - num_positive * (num_positive + 1) / 2
    return float(below / (num_positive * num_negative))


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Rank correlation."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def bootstrap(groups: np.ndarray, score: Score, num_draws: int = 500, seed: int = 0) -> np.ndarray:
    """`score(indices of looks)` with the groups (runs) drawn again, with replacement."""
    rng = np.random.default_rng(seed)
    names = np.unique(groups)
    members = [np.flatnonzero(groups == name) for name in names]
    drawn = (rng.integers(0, len(names), len(names)) for _ in range(num_draws))
    return np.array([score(np.concatenate([members[i] for i in draw])) for draw in drawn])


def interval(values: np.ndarray) -> tuple[float, float]:
    """The middle 95 %."""
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def best_threshold(score: np.ndarray, is_positive: np.ndarray) -> float:
    """The threshold with the smallest sum of both error rates; the middle of the best gap."""
    order = np.argsort(score)
    values, positive = score[order], is_positive[order]
    missed = np.concatenate([[0], np.cumsum(positive)]) / max(1, positive.sum())
    false = np.concatenate([[0], np.cumsum(~positive)])
    false = 1.0 - false / max(1, (~positive).sum())
    edges = np.concatenate([[values[0]], (values[1:] + values[:-1]) / 2, [values[-1]]])
    errors = missed + false
    best = np.flatnonzero(errors <= errors.min() + 1e-12)
    return float(edges[best[len(best) // 2]])


def isotonic(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The best rising map from x to y, by pooling adjacent violators."""
    order = np.argsort(x, kind="stable")
    blocks: list[list[float]] = []  # mean, weight, last x
    for at, value in zip(x[order], y[order]):
        blocks.append([float(value), 1.0, float(at)])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, weight, last = blocks.pop()
            before = blocks[-1]
            total = before[1] + weight
            blocks[-1] = [(before[0] * before[1] + mean * weight) / total, total, last]
    means = np.array([block[0] for block in blocks])
    ends = np.array([block[2] for block in blocks])
    return lambda at: means[np.minimum(np.searchsorted(ends, at), len(means) - 1)]
