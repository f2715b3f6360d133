"""Two figures of what the monitor saw, from the table of `watched.py`.

python -m benchmarks.detection.figures docs/results/detection
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.detection.judging import is_fitted
from benchmarks.detection.watched import Looks, looks_in, sets_of, verdict
from epigrok.monitor import StateRule

COLOURS = {"generalised": "#1b7837", "not": "#b2182b", "lost": "#e08214",
           "in between": "#542788", "blind spot": "#888888"}  # fmt: skip
RUNS = ("affine-7-0", "affine-7-random-0", "gratings-lost-0")
"""One that groks, one that memorises, one that loses what it had."""


def column(looks: Looks, name: str) -> np.ndarray:
    """Numbers of one column."""
    return np.array([float(look[name]) for look in looks])


def scatter(sets: list[Looks]) -> Figure:
    """The ratio against the truth, a point per fitted look."""
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    axes = figure.subplots()
    for outcome, colour in COLOURS.items():
        looks = [look for of_set in sets if _end(of_set) == outcome for look in of_set
                 if is_fitted(look["train accuracy"], look["chance"])]  # fmt: skip
        axes.plot(column(looks, "tolerance_ratio"), column(looks, "generality"), ".", color=colour,
                  markersize=4, alpha=0.6, label=outcome)  # fmt: skip
    axes.axvline(StateRule().threshold, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("tolerance ratio, noise on the head")
    axes.set_ylabel("balanced accuracy above chance")
    axes.legend(title="the run's end", fontsize=7, title_fontsize=7)
    axes.grid(alpha=0.2)
    return figure


def trajectories(sets: list[Looks], runs: tuple[str, ...]) -> Figure:
    """What was seen along single runs beside held-out accuracy, with every change of state."""
    figure = Figure(figsize=(3.4 * len(runs), 3.0), layout="constrained")
    by_run = {looks[0]["run"]: looks for looks in sets}
    for axes, run in zip(figure.subplots(1, len(runs), sharey=True), runs):
        looks = by_run[run]
        step = column(looks, "step")
        axes.plot(step, column(looks, "train accuracy"), color="#bbbbbb", label="training accuracy")
        axes.plot(step, column(looks, "generality"), color="#2166ac",
                  label="held-out accuracy, above chance")  # fmt: skip
        fits = is_fitted(column(looks, "train accuracy"), column(looks, "chance"))
        ratio = np.where(fits, column(looks, "tolerance_ratio"), np.nan)
        axes.plot(step, ratio, color="#b2182b", label="tolerance ratio (no labels)")
        axes.plot(step, column(looks, "network_ratio"), "o", color="#b2182b", markersize=3,
                  label="the same on the whole network")  # fmt: skip
        states = [look["state"] for look in looks]
        for at in np.flatnonzero([a != b for a, b in zip(["fitting", *states], states)]):
            axes.axvline(step[at], color="black", linewidth=0.6, linestyle=":")
            axes.text(step[at], 1.22, states[at], fontsize=6, rotation=90, ha="right", va="top")
        axes.set_xscale("log")
        axes.set_ylim(-0.05, 1.25)
        axes.set_title(run, fontsize=8)
        axes.set_xlabel("step")
        axes.grid(alpha=0.2)
    figure.axes[0].legend(fontsize=6, loc="center left")
    return figure


def _end(looks: Looks) -> str:
    found = verdict(looks)
    return "blind spot" if found.truth == "blind spot" else found.outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sets = sets_of(looks_in(folder / "watched.parquet"))
    scatter(sets).savefig(folder / "ratio-and-truth.png", dpi=110)
    trajectories(sets, RUNS).savefig(folder / "three-runs.png", dpi=110)


if __name__ == "__main__":
    main()
