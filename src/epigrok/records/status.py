"""Where the runs of a directory stand, from their files alone; any engine, no torch, instant."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from os.path import abspath
from pathlib import Path
from typing import Any

from epigrok.checkpoint_files import checkpoint_steps
from epigrok.config import Split, flatten
from epigrok.errors import UserError
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL
from epigrok.records.directory import CONFIG, STATUS, RunDirectory, run_directories
from epigrok.records.foreign import is_step
from epigrok.records.holder import read_holder

STATES = ("running", "failed", "unreadable", "lost", "stopped", "queued", "done")
"""In the order a person wants to see them. `lost`: was running, and no process holds it now."""


@dataclass(frozen=True)
class RunStatus:
    """Where one run stands."""

    run_id: str
    path: Path
    state: str
    config: dict[str, Any]
    """Dotted names."""
    splits: tuple[Split, ...]
    """As the run describes them."""
    step: int
    num_steps: int
    accuracy: dict[str, float]
    """Of the last answer, per split."""
    epistemic: dict[str, float]
    """Per split, under the first posterior with samples; empty without one."""
    steps_per_second: float | None
    """None unless the run is running."""
    age_seconds: float | None
    """Since the status was written."""
    reason: str

    @property
    def seconds_left(self) -> float | None:
        """Time until a running run is done, at its present speed."""
        if not self.steps_per_second:
            return None
        return (self.num_steps - self.step) / self.steps_per_second


def read_statuses(directory: Path) -> list[RunStatus]:
    """All runs of a sweep's directory, or of one run directory."""
    runs = run_directories(directory)
    if not runs:
        raise UserError(f"there are no runs in {directory}")
    now = time.time()
    return [read_status(run, now) for run in runs]


def read_status(run: RunDirectory, now: float) -> RunStatus:
    """One run at the time `now`."""
    status = run.status()
    config, splits, problem = _identity(run)
    state = "unreadable" if problem else state_of(run, status, now)
    is_running = state == "running"
    updated = status.get("updated")
    num_steps = config.get("num_steps", 0)
    step = status.get("step", max(checkpoint_steps(run.checkpoints), default=0))
    return RunStatus(
        # Not resolved: a link to a run elsewhere goes by its own name, as in the tables.
        run_id=Path(abspath(run.path)).name,
        path=run.path,
        state=state,
        config=config,
        splits=splits,
        step=num_steps if state == "done" else step,
        num_steps=num_steps,
        accuracy=_scores(status, ACCURACY_FINAL),
        epistemic=_scores(status, EPISTEMIC_FINAL),
        steps_per_second=status.get("steps_per_second") if is_running else None,
        age_seconds=None if updated is None else max(0.0, now - updated),
        reason=problem or (status.get("reason") or "" if state == "failed" else ""),
    )


def _identity(run: RunDirectory) -> tuple[dict[str, Any], tuple[Split, ...], str]:
    """The configuration under dotted names and the splits; and why the run cannot be read."""
    try:
        splits = run.description().splits
        config = flatten(run.config_json())
    except UserError as error:
        return {}, (), str(error)
    except RecursionError:
        return {}, (), f"{run.path / CONFIG} is nested too deeply"
    except OSError as error:
        return {}, (), f"cannot read {error.filename}: {error.strerror}"
    if not is_step(config.get("num_steps")):
        return {}, (), f"{run.path / CONFIG} does not say how many steps the run has"
    return config, splits, ""


def state_of(run: RunDirectory, status: dict[str, Any], now: float) -> str:
    """One of `STATES`."""
    if run.is_done:
        return "done"
    holder = read_holder(run.path)
    if holder is not None and holder.is_alive(now):
        return "running"
    if not status:
        # A damaged status still shows that somebody began the run.
        is_begun = holder is not None or (run.path / STATUS).exists()
        return "lost" if is_begun else "queued"
    written = status.get("state")
    return written if written in ("failed", "stopped") else "lost"


def counts(statuses: Iterable[RunStatus]) -> dict[str, int]:
    """Number of runs in each state that occurs."""
    found = Counter(status.state for status in statuses)
    return {state: found[state] for state in STATES if found[state]}


def _scores(status: dict[str, Any], name: str) -> dict[str, float]:
    values = status.get(name)
    return values if isinstance(values, dict) else {}
