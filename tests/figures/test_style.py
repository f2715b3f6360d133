"""Looks that tell splits apart, and settings that are given back."""

import matplotlib

from epigrok.config.splits import SPLITS
from epigrok.figures.style import SPLIT_LOOKS, literal, look_of_split, publication_style


def test_every_split_has_a_colour_a_line_and_a_marker_of_its_own() -> None:
    looks = [SPLIT_LOOKS[split.name] for split in SPLITS]
    for aspect in ("color", "linestyle", "marker"):
        assert len({str(look[aspect]) for look in looks}) == len(SPLITS)


def test_a_split_of_somebody_elses_task_always_looks_the_same() -> None:
    assert look_of_split("mine") == look_of_split("mine")
    assert look_of_split("mine")["marker"] not in {look["marker"] for look in SPLIT_LOOKS.values()}


def test_the_callers_settings_come_back() -> None:
    before = matplotlib.rcParams["font.size"]
    with publication_style():
        assert matplotlib.rcParams["font.size"] == 8
    assert matplotlib.rcParams["font.size"] == before


def test_dollar_signs_in_names_begin_no_formula() -> None:
    assert literal("a $5 run") == r"a \$5 run"
