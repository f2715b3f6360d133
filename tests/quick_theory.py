"""A plugin for tests of commands: figures of the theory are empty, because they take seconds."""

from collections.abc import Callable

from matplotlib.figure import Figure

from epigrok.figures import theory, theory_delay_error, theory_tolerance
from epigrok.figures.drawn_figure import DrawnFigure


def empty(name: str) -> Callable[..., DrawnFigure]:
    return lambda *_: DrawnFigure(name, name, "Nothing.", Figure(figsize=(1, 1)), {"x": [0]})


theory.draw_summary = empty("theory-summary")
theory_delay_error.draw_delay_error = empty("theory-delay-error")
theory_tolerance.draw_tolerance = empty("theory-tolerance")
