"""The sweeps that ship with the package."""

from collections.abc import Callable
from pathlib import Path

from epigrok.config import TwoParameterTask
from epigrok.errors import UserError
from epigrok.sweeps.description import Condition, Sweep
from epigrok.sweeps.description_files import read_sweep
from epigrok.sweeps.ivon_recipes import ivon_recipes, ivon_recipes_tiny

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

    Each run ends with a series of context lengths and a series of context noises. The two methods
    are each at their own recipe and not on equal terms: 12,000 steps of Muon against 40,000 of
    IVON, inputs shared between tasks against not shared, gradients clipped to norm 1 against 0.06.
    `paper-small` compares them on equal terms.
    """
    return Sweep(
        name="paper-medium",
        methods=("icl-medium", "icl-medium-ivon"),
        axes=_GRID,
        seeds=(0, 1, 2, 3),
        overrides=_BOTH_SERIES,
    )


_SMALL_TASKS = (4, 8, 16, 32, 64)
_SMALL_FRACTIONS = (0.4, 0.6, 0.8)
_SMALL_ESS = 1e10
"""Of `icl-small-ivon`, at 32 base tasks and training fraction 0.8."""
_CHEAP_EVALUATION = {
    "evaluation.every": 500,
    "evaluation.num_sequences": 1024,
    "evaluation.num_sampled_sequences": 256,
    "num_ladder_checkpoints": 2,
}
_LAPLACE = ["point", "laplace", "weight-noise:0.1"]
_EQUAL_LENGTH = {
    **_CHEAP_EVALUATION,
    "num_steps": 10_000,
    "schedule.warmup_steps": 200,
    "schedule.final_scale": 0.1,
}


def paper_small() -> Sweep:
    """The paper's grid mod 17 on 0.8 M parameters: MAP + Laplace and IVON on equal terms.

    Both methods take 10,000 steps over the same batches of the same tasks, on one schedule, the
    paper's: warm-up, then a cosine to a tenth. They differ in the optimiser and what belongs to it:

    - MAP is Muon with AdamW on embeddings, where the paper has AdamW, which does not leave the
      plateau in this time; its gradients are clipped to norm 1, IVON's steps by `clip_radius`.
    - IVON needs some 4,500 to 7,500 steps to leave the plateau, MAP some 1,000. So 10,000 steps
      compare them at equal cost, not each at its end.
    - IVON's ESS grows with the training set as in the paper, ESS = c·|X|·T, with c such that
      T = 128 and fraction 0.8 have the preset's 1e10; `paper-small-fixed-ess` keeps it fixed.

    Three fractions instead of the paper's six. Seeds vary the initial weights and the batches, as
    in the paper, and not the tasks. Runs of T = 128 and fraction 0.8 end with both series of
    contexts.
    """
    cell = {"task.num_base_tasks": 32, "task.train_fraction": 0.8}
    return Sweep(
        name="paper-small",
        methods=("icl-small", "icl-small-ivon"),
        axes={"task.num_base_tasks": _SMALL_TASKS, "task.train_fraction": _SMALL_FRACTIONS},
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides=_EQUAL_LENGTH,
        conditions=(
            Condition(where={"preset": "icl-small"}, set={"evaluation.posteriors": _LAPLACE}),
            *(
                Condition(
                    where={
                        "preset": "icl-small-ivon",
                        "task.num_base_tasks": num_base_tasks,
                        "task.train_fraction": fraction,
                    },
                    set={"optim.ess": _ess_of_the_paper(num_base_tasks, fraction)},
                )
                for num_base_tasks in _SMALL_TASKS
                for fraction in _SMALL_FRACTIONS
            ),
            Condition(where=cell, set=_BOTH_SERIES),
        ),
    )


def paper_small_fixed_ess() -> Sweep:
    """IVON's column of `paper-small` at fraction 0.8 with one ESS for all task counts.

    The paper's ESS = |X|·T makes σ² 16 times smaller from T = 16 to 256 whatever was learnt. The
    difference between the two columns is how much of the map of EU that explains.
    """
    return Sweep(
        name="paper-small-fixed-ess",
        methods=("icl-small-ivon",),
        axes={"task.num_base_tasks": _SMALL_TASKS},
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides={**_EQUAL_LENGTH, "task.train_fraction": 0.8, "optim.ess": _SMALL_ESS},
    )


def _ess_of_the_paper(num_base_tasks: int, train_fraction: float) -> float:
    """An ESS in proportion to the training set."""
    full, here = (
        TwoParameterTask(modulus=17, num_base_tasks=n, train_fraction=fraction).num_training_points
        for n, fraction in ((32, 0.8), (num_base_tasks, train_fraction))
    )
    return _SMALL_ESS * here / full


def paper_tiny() -> Sweep:
    """The paper's grid for a laptop: task count x fraction of one-parameter tasks, both methods.

    The family of `icl-tiny` (z = a·x mod 31) takes the place of the paper's, so no split has
    unseen tasks on seen inputs. Each method is at its own recipe and length, 2,000 steps of Muon
    against 4,000 of IVON, over the same tasks. Seeds vary the initial weights and the batches, not
    the tasks. Runs of the largest cell end with both series of contexts.
    """
    return Sweep(
        name="paper-tiny",
        methods=("icl-tiny", "icl-tiny-ivon"),
        axes={
            "task.num_train_tasks": (6, 13, 20, 26),
            "task.train_fraction": (0.5, 0.65, 0.8),
        },
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides={"num_ladder_checkpoints": 2},
        conditions=(
            Condition(
                where={"preset": "icl-tiny"},
                # The paper's prior first: it is the one that maps show.
                set={"evaluation.posteriors": [*_LAPLACE[:2], "laplace:evidence", *_LAPLACE[2:]]},
            ),
            Condition(
                where={"task.num_train_tasks": 26, "task.train_fraction": 0.8}, set=_BOTH_SERIES
            ),
        ),
    )


def fates_small() -> Sweep:
    """64 seeds of `icl-small`, tasks and all: how many generalise, memorise, lose tasks?"""
    return Sweep(
        name="fates-small",
        methods=("icl-small",),
        seeds=tuple(range(64)),
        overrides={
            **_CHEAP_EVALUATION,
            "evaluation.posteriors": ["point", "laplace", "weight-noise:0.1"],
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
    "fates-small": fates_small,
    "ivon-recipes": ivon_recipes,
    "ivon-recipes-tiny": ivon_recipes_tiny,
    "paper": paper,
    "paper-medium": paper_medium,
    "paper-small": paper_small,
    "paper-small-fixed-ess": paper_small_fixed_ess,
    "paper-tiny": paper_tiny,
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
