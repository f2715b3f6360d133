"""A figure of your own, in one file: what the learning rate and the gradients did.

    epigrok figure gradient-norm runs/mine --plugin examples/own_figure.py

A figure takes the store, asks it with SQL, and returns a drawing with its data and a caption. It
then belongs to `epigrok figure all` and to every report.
"""

from matplotlib.figure import Figure

import epigrok
from epigrok.errors import UserError
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.style import COLUMN_WIDTH, publication_style
from epigrok.tables import SweepStore


@epigrok.register_figure("gradient-norm", "norm of the gradients over training, run by run")
def draw_gradient_norm(store: SweepStore) -> DrawnFigure:
    """A line per run."""
    query = "select run_id, step, gradient_norm from training order by run_id, step"
    rows = [
        {"run_id": run_id, "step": step, "gradient_norm": norm}
        for run_id, step, norm in store.sql(query).fetchall()
    ]
    if not rows:
        raise UserError(f"no run in {store.path} has taken a step that was evaluated")
    with publication_style():
        figure = Figure(figsize=(COLUMN_WIDTH, 2.2), layout="constrained")
        axes = figure.subplots()
        for run_id in dict.fromkeys(row["run_id"] for row in rows):
            points = [row for row in rows if row["run_id"] == run_id]
            axes.plot(
                [row["step"] for row in points],
                [row["gradient_norm"] for row in points],
                marker="o",
                label=run_id,
            )
        axes.set(xlabel="training step", ylabel="norm of the gradient", yscale="log")
        axes.legend()
    norms = [row["gradient_norm"] for row in rows]
    caption = f"Norm of the gradient over training, from {min(norms):.3g} to {max(norms):.3g}."
    title = "Norm of the gradient over training"
    return DrawnFigure("gradient-norm", title, caption, figure, columns(rows))
