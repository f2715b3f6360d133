"""The unlabelled inputs of one set: taken once, from whatever a training loop has them in.

A set is a tensor, a tuple of arguments, a mapping of keyword arguments, a list of such batches, a
`Dataset` or a `DataLoader`. Batches of the last two may have labels, as pairs or as an entry called
`labels`; they are left out. Which inputs are taken depends on the set alone, and taking them leaves
every random generator as it was.

Letters: B inputs of a batch.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
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
from epigrok.posteriors.calling import LABELS, split_batch

_INPUTS_PER_BATCH = 256
_MOST_COMPARED = 65_536
"""Inputs of a set that are compared with another set's."""


@dataclass(frozen=True)
class InputSet:
    """Batches of inputs, as the model is called on them."""

    name: str
    batches: tuple[Any, ...]
    identities: frozenset[bytes]
    """Digests of the inputs that the set is known to hold, those not taken included."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs of each batch."""
        return tuple(num_inputs(batch) for batch in self.batches)

    @property
    def described(self) -> str:
        """Types and shapes of the first batch."""
        parts = [
            f"{part.dtype} of shape {list(part.shape)}" for part in tensors_in(self.batches[0])
        ]
        return ", ".join(parts)

    @property
    def digest(self) -> str:
        """Of the inputs taken, in their order."""
        rows = (digest for batch in self.batches for digest in digests_of(batch))
        return blake2b(b"".join(rows), digest_size=16).hexdigest()

    def to(self, device: torch.device, dtypes: Mapping[torch.dtype, torch.dtype]) -> "InputSet":
        """The same inputs on another device, in other precisions."""

        def moved(part: Tensor) -> Tensor:
            return part.to(device, dtypes.get(part.dtype, part.dtype))

        batches = tuple(_each_tensor(batch, moved) for batch in self.batches)
        return InputSet(self.name, batches, self.identities)


def taken(source: Any, name: str, at_most: int) -> InputSet:
    """At most this many inputs of `source`, evenly spread where its length is known."""
    with _generators_left_alone(source):
        batches = tuple(_batches(source, name, at_most))
    if not batches:
        raise UserError(f"{name} is empty: pass the inputs to look at")
    is_whole = isinstance(source, Tensor | tuple | Mapping)
    compared = _first(_without_labels(source), _MOST_COMPARED) if is_whole else None
    parts = batches if compared is None else (compared, *batches)
    return InputSet(name, batches, frozenset(d for part in parts for d in digests_of(part)))


def require_apart(watched: InputSet, seen: InputSet) -> None:
    """Refuse a watched set that is mostly part of the seen one."""
    rows = [digest for batch in watched.batches for digest in digests_of(batch)]
    num_shared = sum(digest in seen.identities for digest in rows)
    if 2 * num_shared >= len(rows):
        raise UserError(
            f"{num_shared} of the {len(rows)} inputs of {watched.name} are in {seen.name} too; "
            "watch inputs that the model is not trained on"
        )


def num_inputs(batch: Any) -> int:
    """The length of a batch: that of its first tensor."""
    return next(len(part) for part in tensors_in(batch))


def _batches(source: Any, name: str, at_most: int) -> Iterator[Any]:
    if isinstance(source, Tensor | tuple | Mapping):
        whole = _checked(_without_labels(source), name)
        number = num_inputs(whole)
        if number:
            yield _picked(whole, evenly_spaced(number, at_most))
        return
    if isinstance(source, DataLoader) and _takes_all(source):
        yield from _of_dataset(source.dataset, source.collate_fn, source.batch_size, name, at_most)
        return
    if _is_data_set(source):
        yield from _of_dataset(source, default_collate, None, name, at_most)
        return
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise UserError(
            f"{name} must be a tensor, a tuple or mapping of tensors, a list of batches, a Dataset "
            f"or a DataLoader, got {type(source).__name__}"
        )
    is_loader = isinstance(source, DataLoader | Dataset)
    num_left = at_most
    for batch in source:
        inputs = _inputs_in(batch) if is_loader else _without_labels(batch)
        # Copies: a caller may fill its buffer anew.
        inputs = _each_tensor(_first(_checked(inputs, name), num_left), Tensor.clone)
        num_left -= num_inputs(inputs)
        if num_inputs(inputs):
            yield inputs
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
) -> Iterator[Any]:
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
        yield _checked(_inputs_in(batch), name)


def _with_tensors(example: Any) -> Any:
    """Tokens in lists, as data sets of other libraries have them, are one tensor each."""
    if not isinstance(example, Mapping):
        return example
    return {name: torch.tensor(part, device="cpu") if _is_numbers(part) else part
            for name, part in example.items()}  # fmt: skip


def _is_numbers(part: Any) -> bool:
    return isinstance(part, list) and all(isinstance(number, int | float) for number in part)


def _inputs_in(batch: Any) -> Any:
    """What a model is called on, of a batch that a loader made."""
    if isinstance(batch, tuple | list) and len(batch) == 1:
        return batch[0]
    return _without_labels(split_batch(batch)[0])


def _checked(batch: Any, name: str) -> Any:
    tensors = list(tensors_in(batch))
    if not tensors:
        raise UserError(
            f"{name} holds no tensor, but {type(batch).__name__}; make tensors of it, with "
            "torch.as_tensor for instance"
        )
    if any(part.layout != torch.strided for part in tensors):
        raise UserError(f"{name} holds a sparse tensor; pass dense ones, as with to_dense()")
    if any(part.ndim == 0 for part in tensors):
        raise UserError(f"{name} holds a single number, and a row for each input is needed")
    if len({len(part) for part in tensors}) > 1:
        shapes = [list(part.shape) for part in tensors]
        raise UserError(f"the tensors of {name} have different lengths: shapes {shapes}")
    return batch


def _without_labels(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {name: part for name, part in batch.items() if name != LABELS}
    return batch


def evenly_spaced(number: int, at_most: int) -> Tensor:
    """Evenly spaced indices, so that a set in order of its classes is taken fairly."""
    # Float32 has no odd whole numbers above 2^24; below, it chooses the rows that it always chose.
    dtype = torch.float32 if number <= 2**24 else torch.float64
    spaced = torch.linspace(0, number - 1, min(number, at_most), dtype=dtype, device="cpu")
    return spaced.round().long()


def _picked(batch: Any, index: Tensor) -> Any:
    # Copies: a caller may change its tensor afterwards.
    return _each_tensor(batch, lambda part: part[index.to(part.device)].detach())


def _first(batch: Any, number: int) -> Any:
    return _each_tensor(batch, lambda part: part[:number].detach())


def _each_tensor(batch: Any, change: Any) -> Any:
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: _each_tensor(part, change) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(_each_tensor(part, change) for part in batch)
    return batch


def tensors_in(batch: Any) -> Iterator[Tensor]:
    """All tensors of a batch, in an order that depends on their names alone."""
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        # By name: another mapping may have the same entries in another order.
        for name in sorted(batch, key=str):
            yield from tensors_in(batch[name])
    elif isinstance(batch, tuple | list):
        for part in batch:
            yield from tensors_in(part)


def digests_of(batch: Any) -> Iterator[bytes]:
    """A digest of each input, of all tensors that belong to it."""
    parts = [_bytes_of_rows(part) for part in tensors_in(batch)]
    for rows in zip(*parts):
        yield blake2b(b"".join(row.tobytes() for row in rows), digest_size=16).digest()


def _bytes_of_rows(part: Tensor) -> Any:
    flat = part.detach().cpu().contiguous().reshape(len(part), -1)
    return (flat if flat.dtype == torch.bool else flat.view(torch.uint8)).numpy()


@contextmanager
def _generators_left_alone(source: Any) -> Iterator[None]:
    """Data sets and loaders draw from global generators, and those belong to training."""
    parts = (source, getattr(source, "sampler", None)) if isinstance(source, DataLoader) else ()
    own = {id(g): g for part in parts if (g := getattr(part, "generator", None)) is not None}
    states = [(generator, generator.get_state()) for generator in own.values()]
    python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(of_numpy)
        for generator, state in states:
            generator.set_state(state)
