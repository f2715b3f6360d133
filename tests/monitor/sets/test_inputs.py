"""The inputs of a set are told from those of another."""

import pytest
import torch

from epigrok.errors import UserError
from epigrok.monitor.sets.inputs import evenly_spaced, require_apart
from epigrok.monitor.sets.taking import taken

X = torch.arange(1000.0).view(500, 2)


def test_rows_of_the_largest_sets_lie_within_them() -> None:
    """The last of them was once beyond the end, where float32 has no odd whole numbers."""
    number = 2**24 + 5
    found = evenly_spaced(number, 256)
    assert (int(found[0]), int(found[-1])) == (0, number - 1)


def test_a_watched_set_that_is_part_of_the_seen_one_is_refused() -> None:
    seen = taken(X[:400], "seen", 100)
    # Rows 1, 3, … were not taken, but the tensor is known to hold them.
    for inside in (X[:400], X[1:200:2], X[300:450]):
        with pytest.raises(UserError, match=r"inputs of held out are in seen too"):
            require_apart(taken(inside, "held out", 100), seen)
    require_apart(taken(X[390:], "held out", 110), seen)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int32])
def test_inputs_of_every_type_can_be_compared(dtype: torch.dtype) -> None:
    some = (torch.arange(640).view(64, 10) % 3).to(dtype)
    with pytest.raises(UserError, match="64 of the 64 inputs"):
        require_apart(taken(some, "held out", 100), taken(some.clone(), "seen", 100))
