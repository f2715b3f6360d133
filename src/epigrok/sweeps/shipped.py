"""The sweeps that ship with the package."""

from collections.abc import Callable
from pathlib import Path

from epigrok.errors import UserError
from epigrok.sweeps.description import Condition, Sweep
from epigrok.sweeps.description_files import read_sweep
from epigrok.sweeps.ivon_recipes import ivon_recipes, ivon_recipes_tiny
from epigrok.sweeps.paper_grids import (
    BOTH_SERIES,
    CHEAP_EVALUATION,
    LAPLACE_AND_NOISE,
    paper,
    paper_medium,
    paper_small,
    paper_small_fixed_ess,
    paper_tiny,
    paper_tiny_fixed_ess,
)


def fates_small() -> Sweep:
    """64 seeds of `icl-small`, tasks and all: how many generalise, memorise, lose tasks?"""
    return Sweep(
        name="fates-small",
        methods=("icl-small",),
        seeds=tuple(range(64)),
        overrides={
            **CHEAP_EVALUATION,
            "evaluation.posteriors": LAPLACE_AND_NOISE,
        },
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
                set={"evaluation.posteriors": LAPLACE_AND_NOISE},
            ),
            Condition(
                where={"preset": ["classic-ivon", "icl-tiny-ivon"]},
                set={"evaluation.posteriors": ["point", "ivon", "weight-noise:0.1"]},
            ),
            Condition(where={"preset": ["icl-tiny", "icl-tiny-ivon"]}, set=BOTH_SERIES),
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
    "fates-small": fates_small,
    "ivon-recipes": ivon_recipes,
    "ivon-recipes-tiny": ivon_recipes_tiny,
    "paper": paper,
    "paper-medium": paper_medium,
    "paper-small": paper_small,
    "paper-small-fixed-ess": paper_small_fixed_ess,
    "paper-tiny": paper_tiny,
    "paper-tiny-fixed-ess": paper_tiny_fixed_ess,
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
    if path.is_dir():
        raise UserError(
            f"{path} is a directory; name a shipped sweep, or a TOML or JSON file that describes "
            f"one, and the directory of its runs as in --out {path}"
        )
    return read_sweep(path)
