"""The figure of the README: one transformer groks unseen tasks, then loses them.

    PYTHONPATH=. python -m benchmarks.front_figure docs/results/front            # minutes on a CPU
    PYTHONPATH=. python -m benchmarks.front_figure docs/results/front --redraw   # from the CSV

First `icl-tiny` is trained as its preset says. Then the same weights are trained on with few of
its tasks. Accuracy, epistemic uncertainty and tolerance ratio are read by the same code all along;
the last two see no label.
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

import epigrok
from epigrok.config.splits import ID_TRAIN, OOD_VAL
from epigrok.figures.style import BLACK, BLUE, GREY, TEXT_WIDTH, VERMILION, publication_style
from epigrok.monitor.rule import StateRule
from epigrok.posteriors import WeightNoise
from epigrok.tasks import Batch, TaskFamily, build_family, sample_world
from epigrok.training import TrainState, initial_state, training_steps
from epigrok.training.optimiser import build_optimisers

LEARNS, NARROWED = "learns", "narrowed"
"""The two stages: all training tasks, then a few of them."""
NUM_KEPT_TASKS = 3
NUM_SEQUENCES = 256
WATCHED = "unseen tasks"
STEP, SEEN, UNSEEN, EU, RATIO, STATE = (
    "step",
    "accuracy on seen tasks",
    "accuracy on unseen tasks",
    "epistemic uncertainty in nats",
    "tolerance ratio",
    "state",
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Reader:
    """Reads a model the same way in both stages."""

    seen: Batch
    unseen: Batch
    monitor: epigrok.GrokMonitor
    first_step: int

    @classmethod
    def of(
        cls, model: nn.Module, family: TaskFamily, num_examples: int, before: "Reader | None"
    ) -> "Reader":
        """On the tasks that the family trains on, and on its unseen ones.

        The monitor knows what the one before it has seen, as if it had been saved and loaded.
        """
        seen, unseen = (
            family.evaluation_batch(split, NUM_SEQUENCES, num_examples)
            for split in (ID_TRAIN, OOD_VAL)
        )
        settings = epigrok.MonitorSettings(answered="last")
        watched = {WATCHED: unseen.tokens_BL}
        monitor = epigrok.GrokMonitor(model, seen.tokens_BL, watched, settings=settings)
        if before is None:
            return cls(seen, unseen, monitor, 0)
        monitor.load_state_dict(before.monitor.state_dict())
        return cls(seen, unseen, monitor, before.monitor.readings[-1].step + 1)

    def row(self, step: int, model: nn.Module) -> Row:
        """One line of the table."""
        noise = WeightNoise.relative(model, 0.1)
        epistemic_BT = epigrok.predict(model, noise, self.unseen.tokens_BL).epistemic
        seen, unseen = (_accuracy(model, batch) for batch in (self.seen, self.unseen))
        watched = self.monitor.update(self.first_step + step, train_accuracy=seen)[WATCHED]
        return {
            STEP: step,
            SEEN: seen,
            UNSEEN: unseen,
            EU: float(epistemic_BT[:, -1].mean()),
            RATIO: watched.tolerance_ratio,
            STATE: watched.state,
        }


@torch.no_grad()
def _accuracy(model: nn.Module, batch: Batch) -> float:
    answers_B = model(batch.tokens_BL)[:, -1].argmax(dim=-1)
    return float((answers_B == batch.answers_BT[:, -1]).double().mean())


def rows(num_steps: int = 2000, num_narrow_steps: int = 600) -> Iterator[Row]:
    """Train both stages, looking every 50 steps and then every 15."""
    config = epigrok.preset("icl-tiny", num_steps=num_steps)
    world = sample_world(config.task, config.task_seed)
    state, reader = initial_state(config), None
    for stage, family, every in (
        (LEARNS, build_family(config, world), 50),
        (NARROWED, replace(build_family(config, world), world=_few_tasks(world)), 15),
    ):
        if stage == NARROWED:
            # As one would fine-tune: smaller steps, from the weights that it has.
            optim = replace(config.optim, lr=config.optim.lr / 10, adamw_lr=5e-4)
            config = replace(config, num_steps=num_narrow_steps, optim=optim)
            state = TrainState(state.model, build_optimisers(state.model, config), step=0)
        reader = Reader.of(state.model, family, config.task.num_examples, reader)
        yield {"stage": stage, **reader.row(0, state.model)}
        for record in training_steps(state, family, config):
            if record.step % every == 0:
                yield {"stage": stage, **reader.row(record.step, state.model)}


def _few_tasks(world: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    few = {
        name: world[name][:NUM_KEPT_TASKS] for name in ("train_tasks", "train_inputs", "val_inputs")
    }
    return {**world, **few}


def draw(table: list[dict[str, str]]) -> Figure:
    """A column for each stage: accuracy, uncertainty, tolerance ratio."""
    titles = {
        LEARNS: "It groks: trained on 26 tasks",
        NARROWED: f"It loses them: trained on with {NUM_KEPT_TASKS} of the 26",
    }
    labels = ("accuracy\n(needs labels)", "EU in nats\n(no labels)", "tolerance ratio\n(no labels)")
    with publication_style():
        figure = Figure(figsize=(TEXT_WIDTH, 4.2), layout="constrained")
        panels = figure.subplots(3, 2, sharex="col", sharey="row")
        for (top, middle, bottom), (stage, title) in zip(panels.T, titles.items()):
            lines = [row for row in table if row["stage"] == stage]
            top.set_title(title, fontweight="bold")
            _draw_line(top, lines, SEEN, color=GREY, linestyle=(0, (1, 1)), label="seen tasks")
            _draw_line(top, lines, UNSEEN, color=BLUE, label="unseen tasks")
            _draw_line(middle, lines, EU, color=VERMILION, linestyle=(0, (5, 1, 1, 1)))
            _draw_ratio(bottom, lines, "generalised" if stage == LEARNS else "lost")
            bottom.set_xlabel("training steps")
        for axes, label in zip(panels[:, 0], labels):
            axes.set(ylabel=label, ylim=(-0.03, None))
        panels[0, 0].legend(loc="center right")
    return figure


def _draw_ratio(axes: Axes, lines: list[dict[str, str]], announced: str) -> None:
    """The ratio: faint while the seen tasks are not fitted, with the announcement of a state."""
    states = [row[STATE] for row in lines]
    num_fitting = states.count("fitting")
    _draw_line(axes, lines[: num_fitting + 1], RATIO, color=GREY, alpha=0.5, linewidth=0.8)
    _draw_line(axes, lines[num_fitting:], RATIO, color=BLACK)
    threshold = StateRule().threshold
    axes.axhline(threshold, color=GREY, linestyle=(0, (4, 2)), linewidth=0.8)
    row = lines[states.index(announced)]
    at = (int(row[STEP]), float(row[RATIO]))
    axes.plot(*at, marker="o", color=VERMILION, markersize=4)
    apart = {
        "xytext": (7, 9 if announced == "lost" else 22),
        "textcoords": "offset points",
        "fontsize": 7,
    }
    axes.annotate(f"the monitor says: {announced}", at, **apart)
    if num_fitting:
        axes.text(0, 0.05, "not fitted yet:\nsays nothing", fontsize=7, color=GREY)


def _draw_line(axes: Axes, lines: list[dict[str, str]], column: str, **look: Any) -> None:
    axes.plot([int(row[STEP]) for row in lines], [float(row[column]) for row in lines], **look)


def main() -> None:
    """Train, write the table, draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--redraw", action="store_true")
    parsed = parser.parse_args()
    table = parsed.folder / "groks-then-loses.csv"
    if not parsed.redraw:
        parsed.folder.mkdir(parents=True, exist_ok=True)
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, ("stage", STEP, SEEN, UNSEEN, EU, RATIO, STATE))
            writer.writeheader()
            for row in rows():
                writer.writerow(
                    {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
                )
                file.flush()
    with table.open(newline="") as file:
        draw(list(csv.DictReader(file))).savefig(table.with_suffix(".png"), dpi=200)


if __name__ == "__main__":
    main()
