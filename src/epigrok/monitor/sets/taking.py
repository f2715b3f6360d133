"""Takes the inputs of a set once, from whatever a training loop has them in.

A set is a tensor, a tuple of arguments, a mapping of keyword arguments, a list of such batches, a
`Dataset` or a `DataLoader`. Batches of the last two may have labels, as pairs or as an entry called
`labels`; they are left out, but for which positions have none. Which inputs are taken depends on
the set alone, and taking them leaves every global random generator as it was.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from epigrok.errors import UserError
from epigrok.monitor.sets.inputs import (
    InputSet,
    digests_of,
    each_tensor,
    evenly_spaced,
    num_inputs,
    tensors_in,
)
from epigrok.posteriors.calling import IGNORE_INDEX, LABELS, split_batch
from epigrok.posteriors.evaluating import python_and_numpy_left_alone

_INPUTS_PER_BATCH = 256
_MOST_COMPARED = 65_536
"""Inputs of a set that are compared with another set's."""
_Batch = tuple[Any, Tensor | None]
"""Inputs, and the places of their labels where there are any: see `InputSet.places`."""


def taken(source: Any, name: str, at_most: int) -> InputSet:
    """At most this many inputs of `source`, evenly spread where its length is known."""
    with _generators_left_alone(source):
        found = tuple(_batches(source, name, at_most))
        if not found:
            raise UserError(f"{name} is empty: pass the inputs to look at")
        batches, places = zip(*found)
        is_whole = isinstance(source, Tensor | tuple | Mapping)
        compared = _first(_without_labels(source), _MOST_COMPARED) if is_whole else None
        parts = batches if compared is None else (compared, *batches)
        identities = frozenset(digest for part in parts for digest in digests_of(part))
        return InputSet(name, batches, places, identities)


def _batches(source: Any, name: str, at_most: int) -> Iterator[_Batch]:
    if isinstance(source, Tensor | tuple | Mapping):
        whole = _checked(_parted(source), name)
        number = num_inputs(whole[0])
        if number:
            yield _picked(whole, evenly_spaced(number, at_most))
        return
    if isinstance(source, DataLoader) and _takes_all(source):
        yield from _of_dataset(source.dataset, source.collate_fn, source.batch_size, name, at_most)
        return
    if _is_data_set(source):
        yield from _of_dataset(source, default_collate, None, name, at_most)
        return
    if isinstance(source, IterableDataset):
        source = DataLoader(source, batch_size=_INPUTS_PER_BATCH)
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise UserError(
            f"{name} must be a tensor, a tuple or mapping of tensors, a list of batches, a Dataset "
            f"or a DataLoader, got {type(source).__name__}"
        )
    is_loader = isinstance(source, DataLoader | Dataset)
    num_left = at_most
    for batch in source:
        parted = _checked(_parted_by_loader(batch) if is_loader else _parted(batch), name)
        # Copies: a caller may fill its buffer anew.
        parted = each_tensor(_first(parted, num_left), Tensor.clone)
        num_left -= num_inputs(parted[0])
        if num_inputs(parted[0]):
            yield parted
        if num_left == 0:
            return


def _is_data_set(source: Any) -> bool:
    """Whether it gives an example for each index, also where another library made it."""
    if isinstance(source, Dataset):
        return not isinstance(source, IterableDataset)
    is_known = isinstance(source, DataLoader | list | str | np.ndarray)
    return not is_known and hasattr(source, "__getitem__") and hasattr(source, "__len__")


def _takes_all(loader: DataLoader[Any]) -> bool:
    """Whether a loader goes through all of its data set; another sampler may stand for a split."""
    return (
        not isinstance(loader.dataset, IterableDataset)
        and type(loader.batch_sampler) is BatchSampler
        and type(loader.sampler) in (SequentialSampler, RandomSampler)
    )


def _of_dataset(
    dataset: Any, collate: Any, batch_size: int | None, name: str, at_most: int
) -> Iterator[_Batch]:
    # By index and not through the loader, whose order may be shuffled.
    chosen = evenly_spaced(len(dataset), at_most).tolist()
    size = batch_size or _INPUTS_PER_BATCH
    for start in range(0, len(chosen), size):
        examples = [_with_tensors(dataset[index]) for index in chosen[start : start + size]]
        try:
            batch = collate(examples)
        except (RuntimeError, TypeError) as error:
            raise UserError(
                f"the examples of {name} do not make a batch ({str(error).splitlines()[0]}); pass "
                "a DataLoader with a collate_fn, or a list of batches"
            ) from error
        yield _checked(_parted_by_loader(batch), name)


def _with_tensors(example: Any) -> Any:
    """Tokens in lists, as data sets of other libraries have them, are one tensor each."""
    if not isinstance(example, Mapping):
        return example
    return {name: torch.tensor(part, device="cpu") if _is_numbers(part) else part
            for name, part in example.items()}  # fmt: skip


def _is_numbers(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(number, int | float) for number in part)


def _parted_by_loader(batch: Any) -> _Batch:
    """What a model is called on, of a batch that a loader made, and the places of its labels."""
    if isinstance(batch, tuple | list) and len(batch) == 1:
        return batch[0], None
    inputs, labels = split_batch(batch)
    return _without_labels(inputs), _places(labels)


def _parted(batch: Any) -> _Batch:
    """The same of a batch in which nothing but an entry called `labels` can be labels."""
    labels = batch.get(LABELS) if isinstance(batch, Mapping) else None
    return _without_labels(batch), _places(labels)


def _without_labels(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {name: part for name, part in batch.items() if name != LABELS}
    return batch


def _places(labels: Any) -> Tensor | None:
    if not isinstance(labels, Tensor) or labels.ndim == 0 or labels.is_floating_point():
        return None
    zeros = torch.zeros_like(labels, dtype=torch.long)
    return zeros.masked_fill_(labels == IGNORE_INDEX, IGNORE_INDEX)


def _checked(parted: _Batch, name: str) -> _Batch:
    inputs, places = parted
    tensors = list(tensors_in(inputs))
    if not tensors:
        raise UserError(
            f"{name} holds no tensor, but {type(inputs).__name__}; make tensors of it, with "
            "torch.as_tensor for instance"
        )
    if any(part.layout != torch.strided for part in tensors):
        raise UserError(f"{name} holds a sparse tensor; pass dense ones, as with to_dense()")
    if any(part.ndim == 0 for part in tensors):
        raise UserError(f"{name} holds a single number, and a row for each input is needed")
    if len({len(part) for part in tensors}) > 1:
        shapes = [list(part.shape) for part in tensors]
        raise UserError(f"the tensors of {name} have different lengths: shapes {shapes}")
    return inputs, places if places is not None and len(places) == len(tensors[0]) else None


def _picked(parted: _Batch, index: Tensor) -> Any:
    # Copies: a caller may change its tensor afterwards.
    return each_tensor(parted, lambda part: part[index.to(part.device)].detach())


def _first(batch: Any, number: int) -> Any:
    return each_tensor(batch, lambda part: part[:number].detach())


@contextmanager
def _generators_left_alone(source: Any) -> Iterator[None]:
    """Data sets and loaders draw from generators that belong to training."""
    parts = (source, getattr(source, "sampler", None)) if isinstance(source, DataLoader) else ()
    own = {id(g): g for part in parts if (g := getattr(part, "generator", None)) is not None}
    states = [(generator, generator.get_state()) for generator in own.values()]
    try:
        with torch.random.fork_rng(devices=[]), python_and_numpy_left_alone():
            yield
    finally:
        for generator, state in states:
            generator.set_state(state)
