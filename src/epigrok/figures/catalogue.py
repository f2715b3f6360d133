"""Stand-in until the figures are merged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True)
class DrawnFigure:
    """A figure."""

    name: str
    title: str
    caption: str
    figure: Figure
    table: Mapping[str, Any]


FIGURES: dict[str, str] = {}


def draw_all(store: Any) -> tuple[list[DrawnFigure], dict[str, str]]:
    """The theory figure."""
    from epigrok.figures.theory import summary_caption, summary_figure
    from epigrok.theory.linear_model import summary_model
    from epigrok.theory.summary import summary_table

    model = summary_model(200)
    table = summary_table(model, 2, 0)
    caption = summary_caption(model, 2)
    figure = summary_figure(table, caption)
    drawn = [DrawnFigure("theory-summary", "The solvable model", caption, figure, table)]
    return drawn, {"accuracy-heatmaps": "no axis varies"}
