"""Training tasks by the parallelogram rule, on NumPy integers.

Each base task (a, b) is completed to (a, b), (a, y), (x, b), (x, y) with x ∉ {a, b} and
y ∉ {a, b, x}, none of them used before. The model so meets every coefficient with two partners.
"""

import numpy as np
import torch

from epigrok.errors import UserError
from epigrok.random_streams import random_bits, stream_key

NUM_RESTARTS = 20


def parallelogram_tasks(
    modulus: int, num_base_tasks: int, task_seed: int, allows_zero: bool = True
) -> np.ndarray:
    """4·n distinct tasks, shape (4n, 2); a function of its arguments alone.

    A pass takes base tasks in random order. It completes each by a uniform choice among the free
    corners, and skips those without one. If a pass finds too few, the next tries another order, up
    to `NUM_RESTARTS` passes. The orders do not depend on `num_base_tasks`, so the largest count
    reached would have worked.
    """
    largest = 0
    for attempt in range(NUM_RESTARTS):
        is_free = np.ones((modulus, modulus), dtype=bool)
        if not allows_zero:
            is_free[0, :] = is_free[:, 0] = False
        tasks = _one_pass(is_free, num_base_tasks, task_seed, attempt)
        if len(tasks) == num_base_tasks:
            return np.concatenate(tasks)
        largest = max(largest, len(tasks))
    raise UserError(
        f"no parallelogram set found for p = {modulus} with n = {num_base_tasks} base tasks "
        f"(task_seed {task_seed}); the largest n that works for this seed is {largest}"
    )


def _one_pass(
    is_free: np.ndarray, num_base_tasks: int, task_seed: int, attempt: int
) -> list[np.ndarray]:
    modulus = len(is_free)
    key = stream_key(task_seed, "parallelogram")
    bits = random_bits(key, (2, modulus**2), counter=attempt)
    order = bits[0].argsort().numpy()
    choice = torch.remainder(bits[1], 2**31).numpy()
    completed: list[np.ndarray] = []
    for base, number in zip(order, choice):
        if len(completed) == num_base_tasks:
            break
        a, b = divmod(int(base), modulus)
        corners = _free_corners(is_free, a, b)
        if len(corners):
            x, y = corners[number % len(corners)]
            tasks = np.array([(a, b), (a, y), (x, b), (x, y)])
            is_free[tasks[:, 0], tasks[:, 1]] = False
            completed.append(tasks)
    return completed


def _free_corners(is_free: np.ndarray, a: int, b: int) -> np.ndarray:
    """All (x, y) that complete (a, b), shape (number, 2); none if (a, b) itself is taken."""
    if not is_free[a, b]:
        return np.empty((0, 2), dtype=int)
    # Corner (x, y) needs (x, b), (a, y) and itself free, and y different from x.
    allowed = is_free[:, b][:, None] & is_free[a, :][None, :] & is_free
    np.fill_diagonal(allowed, False)
    allowed[[a, b], :] = False
    allowed[:, [a, b]] = False
    return np.argwhere(allowed)
