"""The sweeps that ship with the package."""

from collections.abc import Callable
from pathlib import Path

from epigrok.errors import UserError
from epigrok.sweeps.description import Condition, Sweep, read_sweep

_GRID = {
    "task.num_base_tasks": (8, 16, 32, 64, 128),
    "task.train_fraction": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
}
_BOTH_SERIES = {"evaluation.final_series": ["context-length", "context-noise"]}


def paper() -> Sweep:
    """The paper's grid: 5 task counts x 6 fractions x 4 seeds x {MAP + Laplace, IVON}.

    Each run ends with a series of context lengths and a series of context noises.
    """
    return Sweep(
        name="paper",
        methods=("icl-paper", "icl-paper-ivon"),
        axes=_GRID,
        seeds=(0, 1, 2, 3),
        overrides={"num_steps": 100_000, **_BOTH_SERIES},
        conditions=(Condition(where={"task.num_base_tasks": 128}, set={"num_steps": 200_000}),),
    )


def paper_medium() -> Sweep:
    """The paper's grid on the 3.1 M-parameter model, which one GPU can finish.

    Each run ends with a series of context lengths and a series of context noises.
    """
    return Sweep(
        name="paper-medium",
        methods=("icl-medium", "icl-medium-ivon"),
        axes=_GRID,
        seeds=(0, 1, 2, 3),
        overrides=_BOTH_SERIES,
    )


def smoke() -> Sweep:
    """Eight runs of a few seconds on a CPU: two tasks, with IVON and without, two seeds."""
    return Sweep(
        name="smoke",
        methods=("icl-tiny", "icl-tiny-ivon", "classic", "classic-ivon"),
        seeds=(0, 1),
        overrides={
            "num_steps": 60,
            "batch_size": 64,
            "schedule.warmup_steps": 5,
            "evaluation.every": 10,
            "evaluation.num_sequences": 48,
            "evaluation.num_sampled_sequences": 48,
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
            Condition(where={"preset": ["icl-tiny", "icl-tiny-ivon"]}, set=_BOTH_SERIES),
        ),
    )


def controls() -> Sweep:
    """Runs that generalise and runs that cannot: do noise, Laplace and IVON see the difference?

    `laplace` takes the weight decay as its prior precision, so it does not exist without decay.
    Every run has the fixed precisions.
    """
    plain, little_data, random_labels, no_decay = (
        "plain",
        "little data",
        "random labels",
        "no decay",
    )
    classic, icl = ["classic", "classic-ivon"], ["icl-tiny", "icl-tiny-ivon"]
    ivon, with_decay = ["classic-ivon", "icl-tiny-ivon"], [plain, little_data, random_labels]
    posteriors = "evaluation.posteriors"
    anywhere = ["weight-noise:0.01", "weight-noise:0.03", "weight-noise:0.1"]
    anywhere += ["laplace:1", "laplace:100", "laplace:evidence"]
    of_ivon = ["point", "ivon", "ivon-isotropic", *anywhere]
    return Sweep(
        name="controls",
        # Longest first: started last, they would run on alone at the end.
        methods=("icl-tiny-ivon", "icl-tiny", "classic-ivon", "classic"),
        variants=(plain, little_data, random_labels, no_decay),
        seeds=(1, 2, 3),
        overrides={posteriors: ["point", *anywhere]},
        conditions=(
            Condition(
                where={"variant": little_data, "preset": classic}, set={"task.train_fraction": 0.2}
            ),
            Condition(
                where={"variant": little_data, "preset": icl}, set={"task.num_train_tasks": 6}
            ),
            Condition(where={"variant": random_labels}, set={"task.random_labels": True}),
            Condition(where={"variant": no_decay}, set={"optim.weight_decay": 0.0}),
            Condition(
                where={"variant": no_decay, "preset": "icl-tiny"},
                set={"optim.adamw_weight_decay": 0.0},
            ),
            Condition(where={"preset": classic}, set={"evaluation.every": 100}),
            Condition(
                where={"variant": with_decay}, set={posteriors: ["point", *anywhere, "laplace"]}
            ),
            Condition(where={"preset": ivon}, set={posteriors: of_ivon}),
            Condition(
                where={"preset": ivon, "variant": with_decay},
                set={posteriors: [*of_ivon, "laplace"]},
            ),
        ),
    )


SWEEPS: dict[str, Callable[[], Sweep]] = {
    "controls": controls,
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
