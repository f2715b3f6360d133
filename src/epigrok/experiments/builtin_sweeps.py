"""The sweeps that ship with the package."""

from collections.abc import Callable
from pathlib import Path

from epigrok.config import presets
from epigrok.errors import UserError
from epigrok.experiments.sweep import Condition, Sweep, read_sweep

_GRID = {
    "task.num_base_tasks": (8, 16, 32, 64, 128),
    "task.train_fraction": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
}


def paper() -> Sweep:
    """The paper's grid: 5 task counts x 6 fractions x 4 seeds x {MAP + Laplace, IVON}."""
    return Sweep(
        name="paper",
        methods=("icl-paper", "icl-paper-ivon"),
        axes=_GRID,
        seeds=(0, 1, 2, 3),
        overrides={"num_steps": 100_000},
        conditions=(Condition(where={"task.num_base_tasks": 128}, set={"num_steps": 200_000}),),
    )


def paper_medium() -> Sweep:
    """The paper's grid on the 3.1 M-parameter model, which one GPU can finish."""
    return Sweep(
        name="paper-medium",
        methods=tuple(name for name in ("icl-medium", "icl-medium-ivon") if name in presets()),
        axes=_GRID,
        seeds=(0, 1, 2, 3),
    )


def smoke() -> Sweep:
    """Eight runs of a few seconds on a CPU: every family of method, two seeds."""
    return Sweep(
        name="smoke",
        methods=("icl-tiny", "icl-tiny-ivon", "classic", "classic-ivon"),
        seeds=(0, 1),
        overrides={
            "num_steps": 60,
            "batch_size": 64,
            "schedule.warmup_steps": 5,
            "evaluation.every": 10,
            "evaluation.num_rows": 48,
            "evaluation.num_sampled_rows": 48,
            "evaluation.num_samples": 2,
            "evaluation.num_final_samples": 4,
            "num_ladder_checkpoints": 4,
        },
        conditions=(
            Condition(
                where={"preset": ["classic", "icl-tiny"]},
                set={"evaluation.posteriors": ["point", "laplace", "weight-noise:0.1"]},
            ),
            Condition(
                where={"preset": ["classic-ivon", "icl-tiny-ivon"]},
                set={"evaluation.posteriors": ["point", "ivon", "weight-noise:0.1"]},
            ),
        ),
    )


SWEEPS: dict[str, Callable[[], Sweep]] = {
    "paper": paper,
    "paper-medium": paper_medium,
    "smoke": smoke,
}


def find_sweep(name_or_file: str) -> Sweep:
    """A shipped sweep by its name, or the one described in a file."""
    if name_or_file in SWEEPS:
        return SWEEPS[name_or_file]()
    path = Path(name_or_file)
    if not path.exists():
        raise UserError(
            f"no sweep named {name_or_file!r} and no such file; there are: {', '.join(SWEEPS)}"
        )
    return read_sweep(path)
