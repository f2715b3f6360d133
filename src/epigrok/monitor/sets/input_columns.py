"""The inputs of a set as a table, a row for each: to tell which of them are alike, or copies."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.monitor.sets.inputs import InputSet, digests_of, evenly_spaced, tensors_in


@dataclass(frozen=True, kw_only=True)
class InputColumns:
    """Inputs as a table, one row each."""

    numbers: Float[Tensor, "N numbers"]
    names: Int[Tensor, "N names"]
    """Tokens and other whole numbers, of which it only matters whether two are equal."""

    digests: tuple[bytes, ...]
    """Of each row, with the columns that were left out."""

    def rows(self, chosen: Int[Tensor, " M"]) -> "InputColumns":
        """Some of them."""
        digests = tuple(self.digests[place] for place in chosen.tolist())
        return InputColumns(numbers=self.numbers[chosen], names=self.names[chosen], digests=digests)

    def new_rows(self, known: "InputColumns | None" = None) -> Int[Tensor, " M"]:
        """Indices of the rows that are a copy neither of an earlier one nor of a known one."""
        old = frozenset() if known is None else frozenset(known.digests)
        first: dict[bytes, int] = {}
        for place, digest in enumerate(self.digests):
            if digest not in old:
                first.setdefault(digest, place)
        return torch.tensor(list(first.values()), dtype=torch.long, device="cpu")

    def is_like(self, other: "InputColumns") -> bool:
        """Whether both have the same columns."""
        return (self.numbers.shape[1], self.names.shape[1]) == (
            other.numbers.shape[1],
            other.names.shape[1],
        )


def columns_of(inputs: InputSet, most_rows: int, most_columns: int) -> InputColumns | None:
    """The inputs as a table; of too many rows or columns, some that are evenly spread.

    None where batches differ in more than their length.
    """
    parts = [list(tensors_in(batch)) for batch in inputs.batches]
    if len({tuple(part.shape[1:] for part in batch) for batch in parts}) > 1:
        return None
    rows = evenly_spaced(sum(inputs.sizes), most_rows)
    flat = [torch.cat(same).cpu()[rows].reshape(len(rows), -1) for same in zip(*parts)]
    whole = [part[:, evenly_spaced(part.shape[1], most_columns)] for part in flat]
    numbers = [part for part in whole if part.is_floating_point() or part.dtype == torch.uint8]
    names = [part for part in whole if all(part is not number for number in numbers)]
    nothing = whole[0].new_zeros(len(whole[0]), 0)
    digests = [digest for batch in inputs.batches for digest in digests_of(batch)]
    return InputColumns(
        numbers=torch.cat([part.double() for part in [nothing, *numbers]], dim=1),
        names=torch.cat([part.long() for part in [nothing, *names]], dim=1),
        digests=tuple(digests[row] for row in rows.tolist()),
    )
