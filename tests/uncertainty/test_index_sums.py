"""Sums of values that share an index."""

import torch

from epigrok.uncertainty.index_sums import sums_by_index


def test_values_are_added_up_by_their_index() -> None:
    values = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], dtype=torch.float64)
    index = torch.tensor([[0, 2, 0], [1, 1, 1]])
    expected = torch.tensor([[5.0, 0.0, 2.0, 0.0], [0.0, 56.0, 0.0, 0.0]], dtype=torch.float64)
    assert torch.equal(sums_by_index(values, index, 4), expected)
