"""Inputs as a table: which columns are numbers, and which rows are copies."""

import torch

from epigrok.monitor.sets.input_columns import columns_of
from epigrok.monitor.sets.taking import taken

X = torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0]])


def test_floats_and_bytes_are_numbers_and_whole_numbers_names() -> None:
    batch = {"tokens": X.long(), "picture": X.byte(), "features": X}
    found = columns_of(taken(batch, "seen", 100), 100, 100)
    assert found is not None
    # By the names of the entries, in order.
    torch.testing.assert_close(found.numbers, torch.cat([X, X], dim=1).double())
    torch.testing.assert_close(found.names, X.long())


def test_batches_of_different_lengths_make_one_table_and_different_shapes_none() -> None:
    whole, parts = (
        columns_of(taken(source, "seen", 100), 100, 100) for source in (X, [X[:3], X[3:]])
    )
    assert whole is not None
    assert parts is not None
    torch.testing.assert_close(parts.numbers, whole.numbers)
    assert parts.digests == whole.digests
    assert columns_of(taken([X, X[:, :1]], "seen", 100), 100, 100) is None


def test_copies_of_earlier_rows_and_of_known_ones_are_not_new() -> None:
    seen, watched = (columns_of(taken(x, "seen", 100), 100, 100) for x in (X, X[2:] + 0.0))
    assert seen is not None
    assert watched is not None
    assert seen.new_rows().tolist() == [0, 1, 3]
    assert watched.new_rows(seen.rows(torch.tensor([0, 1]))).tolist() == [1]
