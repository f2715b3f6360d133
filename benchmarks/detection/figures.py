"""Two figures of the detection benchmark, from its table of looks.

python -m benchmarks.detection.figures docs/results/detection
"""

import argparse
from pathlib import Path

import duckdb
import numpy as np
from matplotlib.figure import Figure

from benchmarks.detection.tables import FITTED
from epigrok.monitor import StateRule

COLOURS = {"generalised": "#1b7837", "not": "#b2182b", "lost": "#e08214",
           "in between": "#542788", "blind spot": "#888888"}  # fmt: skip


def read(path: Path) -> dict[str, np.ndarray]:
    """A table as columns."""
    return dict(duckdb.sql(f"FROM '{path}'").fetchnumpy())


def is_fitted(looks: dict[str, np.ndarray]) -> np.ndarray:
    """Looks at which the training set is fitted, above chance."""
    return looks["train accuracy"] - looks["chance"] >= FITTED * (1.0 - looks["chance"])


def scatter(looks: dict[str, np.ndarray], states: dict[str, np.ndarray]) -> Figure:
    """Both ratios and entropy against the truth, a point per fitted look of the fresh kinds."""
    outcome_of = {
        (run, watched): "blind spot" if made_to == "blind spot" else outcome
        for run, watched, made_to, outcome in zip(
            states["run"], states["watched"], states["made to"], states["outcome"]
        )
    }
    fresh = {run for run, role in zip(states["run"], states["role"]) if role == "fresh"}
    keep = np.array([run in fresh for run in looks["run"]]) & is_fitted(looks)
    outcome = np.array([outcome_of[key] for key in zip(looks["run"], looks["watched"])])
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    panels = (
        ("ratio", "ratio, noise on the head"),
        ("ratio, whole", "ratio, noise on the whole network"),
        ("entropy", "entropy / ln C (reversed)"),
    )
    for axes, (name, label) in zip(figure.subplots(1, len(panels)), panels):
        for kind, colour in COLOURS.items():
            mask = keep & (outcome == kind)
            axes.plot(looks[name][mask], looks["generality"][mask], ".", color=colour,
                      markersize=3.5, alpha=0.6, label=kind)  # fmt: skip
        axes.set_xlabel(label)
        axes.set_ylabel("balanced accuracy above chance")
        axes.grid(alpha=0.2)
    for axes in figure.axes[:2]:
        axes.axvline(StateRule().threshold, color="black", linewidth=0.8, linestyle=":")
    figure.axes[0].legend(title="the run's end", fontsize=7, title_fontsize=7)
    return figure


def trajectories(looks: dict[str, np.ndarray], runs: tuple[str, ...]) -> Figure:
    """Ratio beside held-out accuracy along single runs."""
    figure = Figure(figsize=(3.1 * len(runs), 2.9), layout="constrained")
    for axes, run in zip(figure.subplots(1, len(runs), sharey=True), runs):
        mask = looks["run"] == run
        mask &= looks["watched"] == looks["watched"][np.flatnonzero(mask)[-1]]
        step = looks["step"][mask]
        axes.plot(step, looks["accuracy"][mask], color="#2166ac", label="held-out accuracy")
        axes.plot(step, looks["train accuracy"][mask], color="#bbbbbb", label="training accuracy")
        ratio = np.where(is_fitted(looks)[mask], looks["ratio"][mask], np.nan)
        axes.plot(step, ratio, color="#b2182b", label="ratio, no labels")
        axes.set_xscale("log")
        axes.set_ylim(-0.02, 1.25)
        axes.set_title(f"{run} ({looks['watched'][mask][0]})", fontsize=8)
        axes.set_xlabel("step")
        axes.grid(alpha=0.2)
    figure.axes[0].legend(fontsize=7)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--runs",
        nargs="*",
        default=["affine-7-0", "gratings-vit-random-0", "majority-lost-0", "rare-random-0"],
    )
    options = parser.parse_args()
    looks, states = (read(options.folder / name) for name in ("looks.parquet", "states.csv"))
    scatter(looks, states).savefig(options.folder / "ratio-and-truth.png", dpi=110)
    known = tuple(run for run in options.runs if run in set(looks["run"]))
    trajectories(looks, known).savefig(options.folder / "single-runs.png", dpi=110)


if __name__ == "__main__":
    main()
