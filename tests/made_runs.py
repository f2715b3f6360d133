"""Runs whose curves are made up, so that what a report must say of them is known."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from table_files import append_rows

from epigrok.figures.drawn_figure import DrawnFigure
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare

LAST_STEP = 1000
STEPS = range(0, LAST_STEP + 1, 100)
FITTED, PEAK = 200, 300
PEAK_NATS, FINAL_NATS = 0.8, 0.01
EVIL = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)>$\\frac{$"


def make_sweep(
    directory: Path,
    generalised: Sequence[int | None],
    collapsed: Sequence[int | None],
    name: str = "made",
    first_seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
) -> list[RunDirectory]:
    """One run of `classic` per seed: when it generalises, and when its uncertainty collapses."""
    fixed = {"num_steps": LAST_STEP, "evaluation.posteriors": ["point", "laplace"]}
    sweep = Sweep(
        name=name,
        methods=("classic",),
        seeds=tuple(range(first_seed, first_seed + len(generalised))),
        overrides={**fixed, **(overrides or {})},
    )
    runs = list(prepare(directory, sweep).values())
    for run, solved, quiet in zip(runs, generalised, collapsed, strict=True):
        write_run(run, solved, quiet)
    return runs


def write_run(run: RunDirectory, generalised: int | None, collapsed: int | None) -> None:
    rows = []
    for step in STEPS:
        is_solved = generalised is not None and step >= generalised
        is_quiet = collapsed is not None and step >= collapsed
        nats = PEAK_NATS if step == PEAK else FINAL_NATS if is_quiet else 0.5
        for split, accuracy in (("id_train", step >= FITTED), ("id_val", is_solved)):
            for posterior, num_samples in (("point", 1), ("laplace", 16)):
                keys = {"step": step, "split": split, "posterior": posterior}
                values = {"accuracy_final": float(accuracy), "epistemic_final": nats}
                values["total_final"] = nats + 0.1
                rows.append({**keys, "num_samples": num_samples, **values})
    append_rows(run.table("metrics"), rows)
    last = [row for row in rows if row["step"] == LAST_STEP and row["posterior"] == "laplace"]
    run.write_status(
        state="done",
        step=LAST_STEP,
        updated=1_800_000_000.0,
        accuracy_final={row["split"]: row["accuracy_final"] for row in last},
        epistemic_final={row["split"]: row["epistemic_final"] for row in last},
    )
    run.mark_done()


def change_config(run: RunDirectory, **values: Any) -> None:
    path = run.path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def one_figure(_: object) -> tuple[list[DrawnFigure], dict[str, str]]:
    """In place of the whole catalogue, whose figures take seconds each."""
    figure = Figure(figsize=(4, 3))
    figure.subplots().plot([0, 1], [0, 1])
    drawn = DrawnFigure("a-line", "A line", f"From 0 to 1. {EVIL}", figure, {"x": [0, 1]})
    return [drawn], {"a-surface": f"nothing varies {EVIL}"}


def announce(run: RunDirectory, step: int | None, last_state: str = "generalised") -> None:
    """Write what the monitor said of a made run: memorising until `step`, then its last state."""
    states = {
        at: "generalised" if step is not None and at >= step else "memorising" for at in STEPS
    }
    if step is not None:
        states[LAST_STEP] = last_state
    rows = [{"step": at, "split": "id_val", "state": state} for at, state in states.items()]
    append_rows(run.table("tolerance"), rows)
    run.mark_done()
