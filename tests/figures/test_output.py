"""A figure on disk."""

from math import nan
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from epigrok.errors import UserError
from epigrok.figures.output import csv_text, write_figure


def drawn() -> Figure:
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([0, 1], [0, 1])
    return figure


def test_floats_are_written_in_full_and_nan_as_nothing() -> None:
    assert csv_text({"a": [0.1, nan], "b": ["x", "y"]}) == "a,b\n0.1,x\n,y\n"


def test_a_figure_has_five_files_whose_bytes_repeat(tmp_path: Path) -> None:
    first = write_figure(drawn(), tmp_path / "one", "line", {"x": [1]}, "A line.")
    second = write_figure(drawn(), tmp_path / "two", "line", {"x": [1]}, "A line.")
    assert [path.suffix for path in first] == [".pdf", ".svg", ".png", ".csv", ".txt"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[-1].read_text() == "A line.\n"


def test_a_place_that_cannot_be_written_to_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write to"):
        write_figure(drawn(), tmp_path / "file", "line", {"x": [1]}, "A line.")
