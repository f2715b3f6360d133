"""Inputs are taken from whatever holds them: the same ones every time, and without labels."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

from epigrok.errors import UserError
from epigrok.monitor.sets.inputs import num_inputs
from epigrok.monitor.sets.taking import taken

X = torch.arange(1000.0).view(500, 2)
Y = torch.arange(500) % 7


def rows_of(source: Any, at_most: int = 100) -> Tensor:
    batches = taken(source, "seen", at_most).batches
    assert all(isinstance(batch, Tensor) for batch in batches)
    return torch.cat(batches)


def test_a_tensor_gives_evenly_spread_rows_with_both_ends() -> None:
    found = rows_of(X)
    assert found.shape == (100, 2)
    assert torch.equal(found[[0, -1]], X[[0, -1]])
    assert int((found[1:, 0] - found[:-1, 0]).max()) <= 12
    assert torch.equal(rows_of(X, 1000), X)


def test_what_was_taken_does_not_change_with_the_callers_tensor() -> None:
    mine = X.clone()
    found = taken(mine, "seen", 100)
    mine.zero_()
    assert float(found.batches[0].abs().sum()) > 0.0


def test_tuples_and_mappings_keep_their_parts_together_and_labels_are_left_out() -> None:
    first, second = taken((X, Y), "seen", 50).batches[0]
    assert torch.equal(first[:, 0] // 2 % 7, second.float())
    batch = taken({"x": X, "labels": Y, "scale": 3.0}, "seen", 50).batches[0]
    assert batch.keys() == {"x", "scale"}
    assert num_inputs(batch) == 50


def test_of_labels_only_the_places_without_one_are_kept() -> None:
    labels = torch.arange(1000).view(500, 2).masked_fill(X < 300, -100)
    expected = torch.zeros(500, 2).long().masked_fill(X < 300, -100)
    for source in (
        {"x": X, "labels": labels},
        TensorDataset(X, labels),
        [{"x": X, "labels": labels}],
    ):
        found = taken(source, "seen", 500)
        assert torch.equal(torch.cat(found.places), expected)
    plain = taken({"x": X}, "seen", 500)
    assert plain.places == (None,)
    assert plain.digest != taken({"x": X, "labels": labels}, "seen", 500).digest
    # Labels that are no classes, or not one for each input, say nothing of places.
    for other in (labels.float(), labels[:7], 3):
        assert taken({"x": X, "labels": other}, "seen", 500).places == (None,)


def test_a_stream_of_examples_is_put_into_batches() -> None:
    assert torch.equal(rows_of(Stream(), 300), X[:300])


def test_a_list_of_batches_is_cut_where_enough_are_taken() -> None:
    found = taken([X[:60], X[60:120], X[120:]], "seen", 100)
    assert found.sizes == (60, 40)


class Pairs(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        # As augmentation does.
        random.random()
        np.random.rand()
        torch.rand(1)
        return X[index], Y[index]


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        return iter(X)


class Batches(Dataset[tuple[Tensor, Tensor]]):
    """Its items are whole batches already."""

    def __len__(self) -> int:
        return len(X) // 50

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if index >= len(self):
            raise IndexError(index)
        return X.split(50)[index], Y.split(50)[index]


SOURCES = {
    "data set": TensorDataset(X),
    "data set with labels": TensorDataset(X, Y),
    "augmented data set": Pairs(),
    "shuffling loader": DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True),
    "loader": DataLoader(TensorDataset(X), batch_size=32),
    "loader with a sampler": DataLoader(
        TensorDataset(X), 32, sampler=SubsetRandomSampler([0] * 100)
    ),
    "stream": DataLoader(Stream(), batch_size=32),
    "loader of batches": DataLoader(Batches(), batch_size=None),
}


@pytest.mark.parametrize("name", SOURCES)
def test_data_sets_and_loaders_give_the_same_inputs_and_leave_generators_alone(name: str) -> None:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    first, again = rows_of(SOURCES[name]), rows_of(SOURCES[name])
    assert torch.equal(first, again)
    assert first.shape == (100, 2)
    assert torch.equal(first[0], X[0])
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert np.array_equal(before[2], np.random.get_state()[1])


def test_a_loader_with_a_sampler_of_its_own_stays_within_it() -> None:
    generator = torch.Generator().manual_seed(0)
    sampler = SubsetRandomSampler(range(100, 300), generator=generator)
    state = generator.get_state()
    found = rows_of(DataLoader(TensorDataset(X, Y), batch_size=32, sampler=sampler))
    assert bool(((found[:, 0] >= 200) & (found[:, 0] < 600)).all())
    assert torch.equal(generator.get_state(), state)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (X[:0], "seen is empty"),
        ([], "seen is empty"),
        (TensorDataset(X[:0]), "seen is empty"),
        (3, "seen must be a tensor"),
        ("train", "seen must be a tensor"),
        ({"scale": 3.0}, "seen holds no tensor"),
        (X.numpy(), "no tensor, but ndarray.*torch.as_tensor"),
        ((X, Y[:10]), "different lengths"),
        (torch.tensor(3.0), "holds a single number"),
        (X.to_sparse(), "holds a sparse tensor"),
    ],
)
def test_what_cannot_be_taken_is_said_in_a_sentence(source: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        taken(source, "seen", 100)


def test_batches_in_a_list_do_not_change_with_the_callers_buffer() -> None:
    buffer = X.clone()
    found = taken([buffer], "seen", 1000)
    buffer.zero_()
    assert torch.equal(found.batches[0], X)


class ForeignDataSet:
    """As another library makes them: neither of torch nor a list."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]


@pytest.mark.parametrize("kind", [list, torch.tensor], ids=["lists", "tensors"])
def test_data_sets_of_other_libraries_are_read_by_their_examples(kind: Any) -> None:
    rows = [{"tokens": kind([i, i + 1, 7]), "labels": i % 2} for i in range(90)]
    (batch,) = taken(ForeignDataSet(rows), "seen", 90).batches
    assert batch.keys() == {"tokens"}
    assert batch["tokens"].tolist() == [[i, i + 1, 7] for i in range(90)]
    with pytest.raises(UserError, match="the examples of seen do not make a batch"):
        taken(ForeignDataSet([{"tokens": kind([1] * n)} for n in (2, 3)]), "seen", 90)
