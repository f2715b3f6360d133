"""Courses of runs that are made up, so that what must be said of them is known."""

from collections.abc import Sequence
from pathlib import Path

from epigrok.config.splits import ID_TRAIN, ID_VAL, OOD_VAL, Split
from epigrok.records.status import RunStatus
from epigrok.report.courses import Course, courses_of_run

STEPS = range(0, 1001, 100)
MEMORISING = ["fitting", "fitting", *["memorising"] * 9]


def made_run(run_id: str = "a", state: str = "done", step: int = 1000) -> RunStatus:
    return RunStatus(
        run_id=run_id,
        path=Path(run_id),
        state=state,
        config={"preset": "classic", "run_seed": 0},
        splits=(ID_TRAIN, ID_VAL, OOD_VAL),
        step=step,
        num_steps=1000,
        accuracy={},
        epistemic={},
        steps_per_second=None,
        age_seconds=None,
        reason="",
    )


def made_course(
    accuracy: Sequence[float],
    states: Sequence[str] = (),
    split: Split = ID_VAL,
    run: RunStatus | None = None,
    fitted_from: int = 200,
) -> Course:
    """A course with these accuracies and states at steps 0, 100, 200, …"""
    steps = list(STEPS)[: len(accuracy)]
    metrics = []
    for step, value in zip(steps, accuracy):
        row = {"step": step, "posterior": "point", "num_samples": 1, "epistemic_final": 0.0}
        seen = float(step >= fitted_from)
        metrics.append({**row, "split": ID_TRAIN.name, "accuracy_final": seen})
        metrics.append({**row, "split": split.name, "accuracy_final": value})
        sampled = {"posterior": "laplace", "num_samples": 16, "epistemic_final": 0.1 + step / 1000}
        metrics.append({**metrics[-1], **sampled})
    tolerance = [
        {"step": step, "split": split.name, "state": state, "tolerance_ratio": 0.1 + step / 2000}
        for step, state in zip(steps, states)
    ]
    (course,) = courses_of_run(run or made_run(), metrics, tolerance, ["laplace"])
    return course


def rising(generalised_at: int, last_step: int = 1000) -> list[float]:
    """Accuracies that go from 0 to 1 at a step."""
    return [float(step >= generalised_at) for step in STEPS if step <= last_step]


def announced_at(step: int) -> list[str]:
    """States that become "generalised" at a step."""
    return [m if at < step else "generalised" for at, m in zip(STEPS, MEMORISING)]
