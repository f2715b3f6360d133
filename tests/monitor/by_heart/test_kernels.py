"""Kernels against their definition, and inputs that have none."""

import pytest
import torch

from epigrok.monitor import SEEN
from epigrok.monitor.by_heart.kernels import input_distances, kernels_of
from epigrok.monitor.sets.input_columns import InputColumns
from epigrok.random_streams import normal, stream_key


def columns(numbers: torch.Tensor, names: torch.Tensor | None = None) -> InputColumns:
    names = torch.zeros(len(numbers), 0).long() if names is None else names
    return InputColumns(numbers=numbers.double(), names=names, digests=(b"",) * len(numbers))


def test_a_width_is_a_share_of_the_median_distance() -> None:
    x, own = (normal(stream_key(0, n), (k, 5)).double() for n, k in (("x", 20), ("own", 7)))
    distances = {SEEN: torch.cdist(x, x).square(), "held out": torch.cdist(own, x).square()}
    pairs = sorted(float(distances[SEEN][i, j]) for i in range(20) for j in range(20) if i != j)
    found = kernels_of(distances, 0.25)
    width = 0.25 * pairs[(len(pairs) - 1) // 2]
    torch.testing.assert_close(found["held out"], (-distances["held out"] / width).exp())
    torch.testing.assert_close(found[SEEN].diagonal(), torch.full((20,), 1.1).double())


@pytest.mark.parametrize("num_rows", [7, 0])
def test_too_few_seen_rows_have_no_kernel(num_rows: int) -> None:
    assert kernels_of({SEEN: torch.rand(num_rows, num_rows)}, 1.0) == {}


def test_rows_that_are_all_alike_have_no_kernel() -> None:
    assert kernels_of({SEEN: torch.zeros(20, 20)}, 1.0) == {}


def test_two_names_that_differ_count_as_much_as_two_numbers_on_average() -> None:
    numbers = normal(stream_key(0, "numbers"), (3000, 1))
    names = torch.arange(3000)[:, None]
    none = torch.zeros(3000, 0)
    of_numbers = input_distances(columns(numbers), columns(numbers))
    of_names = input_distances(columns(none, names), columns(none, names))
    is_pair = ~torch.eye(3000, dtype=torch.bool)
    assert float(of_names[is_pair].double().mean()) == pytest.approx(2.0)
    assert float(of_numbers[is_pair].mean()) == pytest.approx(2.0, rel=0.01)
