"""The unlabelled inputs of one set: as the model is called on them, and told from others.

Letters: B inputs of a batch.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from epigrok.errors import UserError


@dataclass(frozen=True)
class InputSet:
    """Batches of inputs, as the model is called on them."""

    name: str
    batches: tuple[Any, ...]
    places: tuple[Tensor | None, ...]
    """Of the labels of each batch where there are any: -100 where a position has no label, and zero
    where it has one. Their values are not kept."""
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
        """Of the inputs taken, in their order, and of the positions that are read."""
        parts = (
            batch if places is None else (batch, places)
            for batch, places in zip(self.batches, self.places)
        )
        rows = (digest for part in parts for digest in digests_of(part))
        return blake2b(b"".join(rows), digest_size=16).hexdigest()

    def to(self, device: torch.device, dtypes: Mapping[torch.dtype, torch.dtype]) -> "InputSet":
        """The same inputs on another device, in other precisions."""

        def moved(part: Tensor) -> Tensor:
            return part.to(device, dtypes.get(part.dtype, part.dtype))

        return replace(self, batches=tuple(each_tensor(batch, moved) for batch in self.batches))


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


def each_tensor(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A batch with all its tensors changed; what is no tensor stays."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: each_tensor(part, change) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(each_tensor(part, change) for part in batch)
    return batch


def evenly_spaced(number: int, at_most: int) -> Tensor:
    """Evenly spaced indices, so that a set in order of its classes is taken fairly."""
    # Float32 has no odd whole numbers above 2^24; below, it chooses the rows that it always chose.
    dtype = torch.float32 if number <= 2**24 else torch.float64
    spaced = torch.linspace(0, number - 1, min(number, at_most), dtype=dtype, device="cpu")
    return spaced.round().long()


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
