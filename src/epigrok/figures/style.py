"""The style of all figures: palette, sizes and fonts, applied only within a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes

COLUMN_WIDTH = 3.4
"""Width of one column of a two-column page, in inches."""
TEXT_WIDTH = 7.0
"""Width of the page's text, in inches."""

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, SKY_BLUE, PURPLE, BLACK)
"""Okabe and Ito's colours, distinct with every common kind of colour vision."""

SPLIT_LOOKS: dict[str, dict[str, Any]] = {
    "id_train": {"color": GREY, "linestyle": (0, (1, 1)), "marker": "x"},
    "id_val": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "ood_train": {"color": GREEN, "linestyle": (0, (5, 1, 1, 1)), "marker": "s"},
    "ood_val": {"color": VERMILION, "linestyle": (0, (4, 1.5)), "marker": "^"},
}
"""Colour, line and marker of each split in every figure; each alone distinguishes the splits."""
_OTHER_SPLITS = (ORANGE, PURPLE, SKY_BLUE, BLACK)

_SETTINGS: dict[Any, Any] = {
    "axes.grid": True,
    "axes.labelsize": 8,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same figure on every machine
    "font.size": 8,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "lines.linewidth": 1.3,
    "lines.markersize": 3,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,  # text stays text
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "epigrok",  # element names do not change from run to run
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


def look_of_split(name: str) -> dict[str, Any]:
    """The look of a split; a split of a plugin gets a colour by its name."""
    colour = _OTHER_SPLITS[sum(name.encode()) % len(_OTHER_SPLITS)]
    return SPLIT_LOOKS.get(name, {"color": colour, "linestyle": "-.", "marker": "d"})


@contextmanager
def publication_style() -> Iterator[None]:
    """Draw and save in the project's style, then restore the caller's."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def literal(text: str) -> str:
    """Escape dollar signs in a user's text, so that they start no formula."""
    return text.replace("$", r"\$")


def label_panel(axes: Axes, letter: str, title: str) -> None:
    """Head a panel with its letter and what it shows."""
    axes.set_title(f"({letter}) {title}", loc="left", fontweight="bold")
