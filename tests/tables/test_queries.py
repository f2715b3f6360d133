"""The parts that queries are made of."""

import numpy as np
import pytest

from epigrok.errors import UserError
from epigrok.tables.queries import axes_of, require_columns, whole_number


@pytest.mark.parametrize(
    ("table", "axes"),
    [
        ("metrics", []),
        ("training", []),
        ("calibration", ["bin"]),
        ("evaluation", ["members"]),
        ("context_noise", ["members", "context_noise"]),
        ("final_positions", ["context_length"]),
        ("latest", []),
        ("latest_positions", ["context_length"]),
    ],
)
def test_what_identifies_a_row_is_never_pooled(table: str, axes: list[str]) -> None:
    assert axes_of(table) == axes


def test_whole_numbers_may_be_numpys() -> None:
    assert type(whole_number("step", np.int64(3))) is int
    for wrong in ("3", 3.0, None):
        with pytest.raises(UserError, match=f"step must be a whole number, got {wrong!r}"):
            whole_number("step", wrong)


def test_a_column_that_does_not_exist_is_named_with_those_that_do() -> None:
    require_columns(["a"], ["b", "a"])
    with pytest.raises(UserError, match="no column 'c'; there are: a, b"):
        require_columns(["a", "c"], ["b", "a", "b"])
