"""Panels in columns, one per setting, with one legend for all."""

from collections.abc import Collection, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from epigrok.config.splits import in_order
from epigrok.figures.settings import setting_label
from epigrok.figures.style import COLUMN_WIDTH, TEXT_WIDTH, look_of_split
from epigrok.tables.groups import Setting, known_splits
from epigrok.tables.store import SweepStore


def setting_panels(
    settings: Sequence[Setting], num_rows: int, row_height: float
) -> tuple[Figure, NDArray[Any]]:
    """A figure with a column of panels for each setting, headed by its name."""
    width = COLUMN_WIDTH if len(settings) == 1 else TEXT_WIDTH
    figure = Figure(figsize=(width, num_rows * row_height + 0.6), layout="constrained")
    panels = figure.subplots(num_rows, len(settings), squeeze=False, sharex="col")
    for axes, setting in zip(panels[0], settings):
        axes.set_title(setting_label(setting), fontsize=7, fontweight="bold")
    return figure, panels


def split_look(split: str, num_points: int) -> dict[str, Any]:
    """The look of a split's line, with markers on a few of its points."""
    return {**look_of_split(split), "markevery": max(1, num_points // 8)}


def split_handles(drawn: Collection[str]) -> list[Artist]:
    """Legend entries of the drawn splits."""
    return [Line2D([], [], label=split, **look_of_split(split)) for split in in_order(drawn)]


def add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """One legend under all panels, in rows that fit the figure's width."""
    per_row = 2 if figure.get_figwidth() <= COLUMN_WIDTH else 6
    figure.legend(
        handles=list(handles), loc="outside lower center", ncols=min(len(handles), per_row)
    )


def label_nats(axes: Axes, quantity: str, posterior: str) -> None:
    """An axis of a quantity in nats, from zero; small values share one power of ten."""
    axes.set_ylabel(f"{quantity} (nats)\n{posterior}")
    axes.set_ylim(0.0, 1.08 * max(axes.dataLim.y1, 1e-12))
    axes.ticklabel_format(axis="y", scilimits=(-2, 3))


def label_steps(axes: Axes) -> None:
    """An axis of training steps."""
    axes.set_xlabel("training step")
    label_thousands(axes)


def label_thousands(axes: Axes) -> None:
    """Few and round ticks on an x axis of large whole numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(3, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def splits_sentence(drawn: Collection[str], store: SweepStore) -> str:
    """A sentence on what the drawn splits are."""
    known = known_splits(store)
    meanings = [f"{name}, {known[name].meaning}" for name in in_order(drawn) if name in known]
    return "Splits: " + "; ".join(meanings) + "."
