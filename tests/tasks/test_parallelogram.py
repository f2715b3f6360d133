"""The parallelogram rule: distinct tasks, right corners, and an end to every search."""

import re

import numpy as np
import pytest

from epigrok.errors import UserError
from epigrok.tasks.parallelogram import parallelogram_tasks


@pytest.mark.parametrize("num_base_tasks", [8, 16, 32, 64, 128])
def test_sets_hold_four_distinct_tasks_per_base_task_for_fifty_seeds(num_base_tasks: int) -> None:
    for seed in range(50):
        tasks = parallelogram_tasks(29, num_base_tasks, seed)
        assert tasks.shape == (4 * num_base_tasks, 2)
        assert len(np.unique(tasks, axis=0)) == 4 * num_base_tasks
        assert tasks.min() >= 0
        assert tasks.max() < 29


@pytest.mark.parametrize(("modulus", "num_base_tasks"), [(29, 64), (13, 20), (7, 4)])
def test_every_base_task_is_completed_by_the_rule(modulus: int, num_base_tasks: int) -> None:
    corners = parallelogram_tasks(modulus, num_base_tasks, 1).reshape(-1, 4, 2)
    for (a, b), (a1, y1), (x1, b1), (x, y) in corners:
        assert (a1, y1, x1, b1) == (a, y, x, b)
        assert x not in (a, b)
        assert y not in (a, b, x)


def test_the_set_is_a_function_of_the_seed() -> None:
    assert np.array_equal(parallelogram_tasks(29, 32, 5), parallelogram_tasks(29, 32, 5))
    assert not np.array_equal(parallelogram_tasks(29, 32, 5), parallelogram_tasks(29, 32, 6))


@pytest.mark.parametrize(("modulus", "num_base_tasks"), [(5, 6), (13, 42), (2, 1), (7, 12)])
def test_where_no_set_is_found_the_error_names_the_largest_that_works(
    modulus: int, num_base_tasks: int
) -> None:
    for seed in range(5):
        with pytest.raises(UserError, match=rf"p = {modulus} with n = {num_base_tasks}") as error:
            parallelogram_tasks(modulus, num_base_tasks, seed)
        largest = int(re.search(r"is (\d+)$", str(error.value)).group(1))  # type: ignore[union-attr]
        assert largest < num_base_tasks
        if largest:
            assert len(parallelogram_tasks(modulus, largest, seed)) == 4 * largest
        with pytest.raises(UserError):
            parallelogram_tasks(modulus, largest + 1, seed)
