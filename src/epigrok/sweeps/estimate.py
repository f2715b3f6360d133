"""How much of a sweep is left and what it will cost, from measured speeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epigrok.config import RunConfig, flatten, to_json
from epigrok.records.directory import RunDirectory, run_directories

_COSTLY = ("model.", "evaluation.", "batch_size", "task.kind", "task.modulus", "task.num_examples")
_COSTLY_OPTIMISER = ("optim.kind", "optim.num_train_samples", "precision")

Shape = tuple[tuple[str, str], ...]
"""The fields that decide what a step costs."""


@dataclass(frozen=True)
class Estimate:
    """The work left, and how long it takes on one device (or one share of it)."""

    num_steps: int
    hours: float
    num_unknown_runs: int
    """Runs without a measured speed, which `hours` leaves out."""


def estimate(
    runs: Mapping[str, RunConfig], directory: Path | None, steps_per_second: float | None
) -> Estimate:
    """Add up what the unfinished runs still need.

    Args:
        runs: Run id -> configuration.
        directory: The sweep's directory; its timings give the speed of runs of the same shape.
        steps_per_second: Speed of every run, if known from elsewhere.
    """
    measured = {} if directory is None else measured_speeds(directory)
    num_steps, seconds, num_unknown = 0, 0.0, 0
    for name, config in runs.items():
        left = _steps_left(None if directory is None else directory / name, config)
        speed = steps_per_second or measured.get(_shape(flatten(to_json(config))))
        num_steps += left
        if speed is None:
            num_unknown += left > 0
        else:
            seconds += left / speed
    return Estimate(num_steps, seconds / 3600.0, num_unknown)


def measured_speeds(directory: Path) -> dict[Shape, float]:
    """Steps per second, evaluations included, over all recorded work on each shape of run."""
    if not directory.is_dir() or not run_directories(directory):
        return {}
    # Here and not above: a machine that only trains needs no database library.
    from epigrok.tables import open_sweep

    store = open_sweep(directory)
    spent = store.sql(
        """select run_id, max(step), sum(seconds_training + seconds_evaluating)
           from timings group by run_id having max(step) > 0"""
    )
    work: dict[Shape, tuple[int, float]] = {}
    for run_id, run_steps, run_seconds in spent.fetchall():
        shape = _shape(flatten(store.runs[run_id].config_json()))
        steps, seconds = work.get(shape, (0, 0.0))
        work[shape] = steps + run_steps, seconds + run_seconds
    return {shape: steps / seconds for shape, (steps, seconds) in work.items() if seconds > 0}


def _steps_left(path: Path | None, config: RunConfig) -> int:
    if path is None:
        return config.num_steps
    run = RunDirectory(path)
    return 0 if run.is_done else config.num_steps - int(run.status().get("step", 0))


def _shape(flat_config: Mapping[str, Any]) -> Shape:
    return tuple(
        (name, repr(value))
        for name, value in sorted(flat_config.items())
        if name.startswith(_COSTLY) or name in _COSTLY_OPTIMISER
    )
