"""A figure's table and its maps, as tests of figures look at them."""

from typing import Any

import numpy as np
from matplotlib.collections import QuadMesh

from epigrok.figures.drawn_figure import DrawnFigure


def rows(drawn: DrawnFigure, **wanted: object) -> list[dict[str, Any]]:
    every = [dict(zip(drawn.table, values)) for values in zip(*drawn.table.values(), strict=True)]
    return [row for row in every if all(row[name] == value for name, value in wanted.items())]


def panel_titled(drawn: DrawnFigure, title: str, row: int) -> np.ma.MaskedArray:
    """Values of a map, as drawn."""
    panels = [axes for axes in drawn.figure.axes if axes.get_title() == title]
    (mesh,) = [artist for artist in panels[row].collections if isinstance(artist, QuadMesh)]
    return mesh.get_array()
