"""Rows as columns."""

from math import isnan

import numpy as np

from epigrok.figures.drawn_figure import columns, listed


def test_what_a_row_lacks_is_nan_in_its_column() -> None:
    table = columns([{"a": 1}, {"a": 2, "b": 3}])
    assert table["a"] == [1, 2]
    assert isnan(table["b"][0])
    assert table["b"][1] == 3


def test_arrays_become_lists() -> None:
    assert listed({"x": np.arange(2)}) == {"x": [0, 1]}
