"""Noise tolerance of linear classifiers, six panels; drawn from `tolerance_table`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from epigrok.figures.catalogue import register_figure
from epigrok.figures.drawn_figure import DrawnFigure, listed
from epigrok.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    TEXT_WIDTH,
    VERMILION,
    label_panel,
    publication_style,
)
from epigrok.figures.theory import rows
from epigrok.tables.store import SweepStore
from epigrok.theory.classifier.noise_tolerance import fresh_tolerance
from epigrok.theory.classifier.tolerance_table import (
    CLUSTERS_DECAY,
    CLUSTERS_LAMBDA,
    FEATURES_DECAY,
    MEANINGFUL,
    TIME_DECAY,
    TIME_LAMBDA,
    TIME_START,
    tolerance_table,
)
from epigrok.theory.summary import Table

_LOOKS: dict[str, dict[str, Any]] = {
    "ratio": {"linestyle": "-", "linewidth": 1.6},
    "accuracy": {"linestyle": (0, (4, 1.5)), "linewidth": 1.1},
    "train_accuracy": {"linestyle": (0, (1, 1)), "linewidth": 1.1},
}
_LOOKS |= {"tolerance_seen": _LOOKS["train_accuracy"], "tolerance_watched": _LOOKS["accuracy"]}
_MARKERS = {"ratio": "o", "accuracy": "s", "train_accuracy": "x"}
_MARKERS |= {"tolerance_seen": "x", "tolerance_watched": "s"}
_NAMES = {
    "ratio": "ratio of tolerances",
    "accuracy": "accuracy, fresh inputs",
    "train_accuracy": "accuracy, training inputs",
}
_FINITE_WIDTH, _NUM_FINITE_SYSTEMS = 200, 5
_COLOURS = {"ratio": VERMILION, "accuracy": BLUE, "train_accuracy": GREY}


def draw_tolerance(d: int, num_seeds: int, seed: int = 0) -> DrawnFigure:
    """The figure with `num_seeds` simulated classifiers of about `d` weights at every point."""
    table = tolerance_table(d, num_seeds, seed)
    title = "Noise tolerance of a linear classifier: what the ratio reads"
    figure = tolerance_figure(table)
    caption = tolerance_caption(d, num_seeds)
    return DrawnFigure("theory-tolerance", title, caption, figure, listed(table))


def tolerance_figure(table: Table) -> Figure:
    """Where the ratio follows accuracy, above, and what moves it or misleads it, below."""
    with publication_style():
        figure = Figure(figsize=(1.25 * TEXT_WIDTH, 5.2), layout="constrained")
        panels = figure.subplots(2, 3)
        _draw_data(panels[0, 0], table)
        _draw_features(panels[0, 1], table)
        _draw_clusters(panels[0, 2], table)
        _draw_tolerances(panels[1, 0], table)
        _draw_rule(panels[1, 1], table)
        _draw_time(panels[1, 2], table)
    return figure


def tolerance_caption(d: int, num_seeds: int) -> str:
    """What the panels show, with their parameters."""
    points = (
        f"Points: mean and standard error of {num_seeds} simulated classifiers of about {d} "
        "weights. "
        if num_seeds
        else ""
    )
    return (
        "Ratio of noise tolerances, fresh inputs over training inputs, of linear classifiers with "
        "Gaussian inputs; tolerance is read at κ = 0.9. Above, what raises the ratio along with "
        "accuracy while training inputs stay fitted: "
        "(a) more training inputs per weight, labelled by a teacher; "
        "(b) features without meaning, as many as training inputs, that fade beside "
        f"{MEANINGFUL:g} per input that carry the rule (logistic loss, decay {FEATURES_DECAY:g}); "
        "(c) inputs with one answer becoming alike: two clusters that move apart "
        f"({CLUSTERS_LAMBDA:g} weights per input, logistic loss, decay {CLUSTERS_DECAY:g}). "
        "(d) The tolerances themselves: under a teacher fresh inputs tolerate 0.158 whatever was "
        "learnt, and the ratio moves with the training inputs alone; clusters raise the tolerance "
        "of fresh inputs to that of seen ones. "
        "What misleads it: (e) without a rule it passes 1/2 and 1 before the largest number of "
        "inputs that can be fitted, two per weight (largest margin); "
        f"(f) in training from a start of length {TIME_START**0.5:g} at fixed features it falls "
        f"from above 1 while accuracy rises (least squares, {TIME_LAMBDA:g} weights per input, "
        f"decay {TIME_DECAY:g}). "
        f"Curves: limit of many weights. {points}".strip()
    )


def _draw_data(axes: Axes, table: Table) -> None:
    for family, colour in (("largest margin", VERMILION), ("least squares", ORANGE)):
        curves = rows(table, panel="data", family=family)
        for quantity in ("ratio", "accuracy"):
            _draw(axes, curves, quantity, colour, f"{quantity}, {family}")
    axes.set(xscale="log", xlim=(0.1, 100), ylim=(0, 1.05))
    axes.set(xlabel="training inputs per weight $n/d$", ylabel="ratio, accuracy")
    axes.legend(loc="lower right")
    label_panel(axes, "a", "more data")


def _draw_features(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="features")
    for quantity, colour in _COLOURS.items():
        _draw(axes, curves, quantity, colour, _NAMES[quantity])
    axes.set(xscale="log", xlim=(1.1, 1e-3), ylim=(0, 1.05))
    axes.set(xlabel="size of the features without meaning", ylabel="ratio, accuracy")
    axes.legend(loc="lower right")
    label_panel(axes, "b", "features without meaning fade")


def _draw_clusters(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="clusters")
    for quantity, colour in _COLOURS.items():
        _draw(axes, curves, quantity, colour, _NAMES[quantity])
    axes.set(xlim=(-0.1, 6), ylim=(0, 1.05))
    axes.set(xlabel="separation of the clusters", ylabel="ratio, accuracy")
    axes.legend(loc="lower right")
    label_panel(axes, "c", "inputs of one answer become alike")


def _draw_tolerances(axes: Axes, table: Table) -> None:
    clusters = rows(table, panel="clusters")
    _draw(axes, clusters, "tolerance_seen", GREY, "training inputs, panel c")
    _draw(axes, clusters, "tolerance_watched", BLUE, "fresh inputs, panel c")
    axes.axhline(fresh_tolerance(), color=ORANGE, linewidth=1.0, label="fresh inputs, teacher")
    axes.set(yscale="log", xlim=(-0.1, 6), ylim=(0.1, 8))
    _plain_ticks(axes, (0.1, 0.2, 0.5, 1, 2, 5))
    axes.set(xlabel="separation of the clusters", ylabel="noise tolerance")
    axes.legend(loc="upper left")
    label_panel(axes, "d", "what moves: fresh inputs")


def _draw_rule(axes: Axes, table: Table) -> None:
    for family, colour in (("labels with a rule", BLUE), ("labels without", VERMILION)):
        _draw(axes, rows(table, panel="rule", family=family), "ratio", colour, f"ratio, {family}")
    for level in (0.5, 1.0):
        axes.axhline(level, color=GREY, linewidth=0.7, linestyle=":")
    axes.axvline(2.0, color=GREY, linewidth=0.7)
    axes.text(1.98, 0.07, "capacity", rotation=90, ha="right", va="bottom", fontsize=6.5)
    axes.set(yscale="log", xlim=(0, 2.05), ylim=(0.05, 5))
    _plain_ticks(axes, (0.1, 0.5, 1, 2, 5))
    axes.set(xlabel="training inputs per weight $n/d$", ylabel="ratio of tolerances")
    axes.legend(loc="upper left")
    label_panel(axes, "e", "labels without a rule, all fitted")


def _draw_time(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="time")
    for quantity, colour in _COLOURS.items():
        _draw(axes, curves, quantity, colour, _NAMES[quantity])
    axes.set(xscale="log", yscale="log", xlim=(0.3, 3e4), ylim=(0.1, 8))
    _plain_ticks(axes, (0.1, 0.2, 0.5, 1, 2, 5))
    axes.set(xlabel="time $s$", ylabel="ratio, accuracy")
    axes.legend(loc="lower left")
    label_panel(axes, "f", "training from a large start")


def _draw(axes: Axes, curves: Table, quantity: str, colour: str, label: str) -> None:
    chosen = rows(curves, quantity=quantity)
    line = rows(chosen, source="limit")
    axes.plot(line["x"], line["value"], color=colour, label=label, **_LOOKS[quantity])
    points = rows(chosen, source="simulated")
    axes.errorbar(
        points["x"], points["value"], yerr=np.nan_to_num(points["error"]), color=colour,
        linestyle="none", marker=_MARKERS[quantity], markersize=3, elinewidth=0.8, capsize=1.5,
    )  # fmt: skip


def _plain_ticks(axes: Axes, ticks: tuple[float, ...]) -> None:
    axes.set_yticks(ticks)
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()


@register_figure(
    "theory-tolerance",
    "the solvable classifier: noise tolerance beside accuracy",
    place=95,
    shows_runs=False,
)
def draw_tolerance_of_any_store(store: SweepStore) -> DrawnFigure:
    """The figure; the theory is the same for every directory."""
    del store
    return draw_tolerance(_FINITE_WIDTH, _NUM_FINITE_SYSTEMS)
