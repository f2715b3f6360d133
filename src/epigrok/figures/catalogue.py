"""Every figure by its name, drawn from the tables of a run or a sweep."""

from collections.abc import Callable

from epigrok.errors import UserError
from epigrok.experiments.store import SweepStore
from epigrok.figures.calibration import draw_calibration
from epigrok.figures.context import draw_context_length, draw_context_noise
from epigrok.figures.drawn_figure import DrawnFigure
from epigrok.figures.heatmaps import draw_accuracy_heatmaps, draw_uncertainty_heatmaps
from epigrok.figures.oracle_distance import draw_oracle_distance
from epigrok.figures.teaser import draw_teaser
from epigrok.figures.theory import draw_summary
from epigrok.figures.theory_delay_error import draw_delay_error
from epigrok.figures.trajectory import draw_trajectory
from epigrok.theory.linear_model import summary_model

__all__ = ["FIGURES", "DrawnFigure", "draw_all", "draw_figure"]

_NUM_FINITE_SYSTEMS = 20

FIGURES = {
    "teaser": "uncertainty collapses at the transition, network and theory side by side",
    "trajectory": "accuracy and uncertainty over training: the peak and the threshold",
    "accuracy-heatmaps": "accuracy over the grid of a sweep",
    "uncertainty-heatmaps": "epistemic and aleatoric uncertainty over the grid of a sweep",
    "context-length": "accuracy, EU and AU against context length, with the exact floor",
    "context-noise": "accuracy, EU and AU against context noise, with the exact floor",
    "oracle-distance": "from the memorising to the generalising exact predictor over training",
    "calibration": "how often predictions of each confidence are right",
    "theory-summary": "the solvable model: dynamics, peaks, threshold, delay",
    "theory-delay-error": "the solvable model: how far each delay formula is off",
}
"""Name -> what it shows, in the order of a report."""

_DRAW: dict[str, Callable[[SweepStore], DrawnFigure]] = {
    "teaser": draw_teaser,
    "trajectory": draw_trajectory,
    "accuracy-heatmaps": draw_accuracy_heatmaps,
    "uncertainty-heatmaps": draw_uncertainty_heatmaps,
    "context-length": draw_context_length,
    "context-noise": draw_context_noise,
    "oracle-distance": draw_oracle_distance,
    "calibration": draw_calibration,
    # The theory is the same for every directory.
    "theory-summary": lambda _: draw_summary(summary_model(), _NUM_FINITE_SYSTEMS),
    "theory-delay-error": lambda _: draw_delay_error(),
}


def draw_figure(name: str, store: SweepStore) -> DrawnFigure:
    """Draw one figure; if the data for it is missing, the error says what would make it."""
    if name not in FIGURES:
        raise UserError(f"no figure named {name!r}; there are: {', '.join(FIGURES)}")
    return _DRAW[name](store)


def draw_all(store: SweepStore) -> tuple[list[DrawnFigure], dict[str, str]]:
    """All figures that can be drawn, and for each of the others the reason."""
    drawn: list[DrawnFigure] = []
    missing: dict[str, str] = {}
    for name in FIGURES:
        try:
            drawn.append(draw_figure(name, store))
        except UserError as error:
            missing[name] = str(error)
    return drawn, missing
