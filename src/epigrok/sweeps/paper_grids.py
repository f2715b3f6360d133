"""The paper's grid, task count x training fraction, at four sizes, and the controls for IVON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from epigrok.config import IVONConfig, preset
from epigrok.sweeps.description import Condition, Sweep

_GRID = {
    "task.num_base_tasks": (8, 16, 32, 64, 128),
    "task.train_fraction": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
}
BOTH_SERIES = {"evaluation.final_series": ["context-length", "context-noise"]}


def paper() -> Sweep:
    """The paper's grid: 5 task counts x 6 fractions x 4 seeds x {MAP + Laplace, IVON}.

    Each run ends with a series of context lengths and a series of context noises.
    """
    return Sweep(
        name="paper",
        methods=("icl-paper", "icl-paper-ivon"),
        axes=_GRID,
        seeds=(0, 1, 2, 3),
        overrides={"num_steps": 100_000, **BOTH_SERIES},
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
        overrides=BOTH_SERIES,
    )


_SMALL_GRID = {
    "task.num_base_tasks": (4, 8, 16, 32, 64),
    "task.train_fraction": (0.4, 0.6, 0.8),
}
CHEAP_EVALUATION = {
    "evaluation.every": 500,
    "evaluation.num_sequences": 1024,
    "evaluation.num_sampled_sequences": 256,
    "num_ladder_checkpoints": 2,
}
LAPLACE_AND_NOISE = ["point", "laplace", "weight-noise:0.1"]
_EQUAL_LENGTH = {
    **CHEAP_EVALUATION,
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
        axes=_SMALL_GRID,
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides=_EQUAL_LENGTH,
        conditions=(
            Condition(
                where={"preset": "icl-small"}, set={"evaluation.posteriors": LAPLACE_AND_NOISE}
            ),
            *_ess_grows_with_training_set("icl-small-ivon", _SMALL_GRID),
            Condition(where=cell, set=BOTH_SERIES),
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
        axes={"task.num_base_tasks": _SMALL_GRID["task.num_base_tasks"]},
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides={**_EQUAL_LENGTH, "task.train_fraction": 0.8},
    )


_TINY_GRID = {
    "task.num_train_tasks": (6, 13, 20, 26),
    "task.train_fraction": (0.5, 0.65, 0.8),
}
_TINY_IVON = {"evaluation.posteriors": ["point", "ivon", "weight-noise:0.1"]}


def paper_tiny() -> Sweep:
    """The paper's grid for a laptop: task count x fraction of one-parameter tasks, both methods.

    The family of `icl-tiny` (z = a·x mod 31) takes the place of the paper's, so no split has
    unseen tasks on seen inputs. Each method is at its own recipe and length, 2,000 steps of Muon
    against 4,000 of IVON, over the same tasks. IVON's ESS grows with the training set as in
    `paper-small`, to the preset's 1e7 at 26 tasks and fraction 0.8; `paper-tiny-fixed-ess` keeps
    it there. Seeds vary the initial weights and the batches, not the tasks. Runs of the largest
    cell end with both series of contexts.
    """
    of_map, of_ivon = {"preset": "icl-tiny"}, {"preset": "icl-tiny-ivon"}
    # The paper's prior first: it is the one that maps show.
    priors = ["point", "laplace", "laplace:evidence", "weight-noise:0.1"]
    return Sweep(
        name="paper-tiny",
        methods=("icl-tiny", "icl-tiny-ivon"),
        axes=_TINY_GRID,
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides={"num_ladder_checkpoints": 2},
        conditions=(
            Condition(where=of_map, set={"evaluation.posteriors": priors}),
            Condition(where=of_ivon, set=_TINY_IVON),
            *_ess_grows_with_training_set("icl-tiny-ivon", _TINY_GRID),
            Condition(
                where={"task.num_train_tasks": 26, "task.train_fraction": 0.8}, set=BOTH_SERIES
            ),
        ),
    )


def paper_tiny_fixed_ess() -> Sweep:
    """IVON's column of `paper-tiny` at fraction 0.8 with one ESS for all task counts."""
    return Sweep(
        name="paper-tiny-fixed-ess",
        methods=("icl-tiny-ivon",),
        axes={"task.num_train_tasks": _TINY_GRID["task.num_train_tasks"]},
        seeds=(0, 1, 2, 3),
        task_seeds=(0,),
        overrides={"num_ladder_checkpoints": 2, "task.train_fraction": 0.8, **_TINY_IVON},
    )


def _ess_grows_with_training_set(
    name: str, grid: Mapping[str, Sequence[Any]]
) -> Iterator[Condition]:
    """ESS = c·|X|·T in every cell, as in the paper, with c such that the preset keeps its own."""
    recipe = preset(name)
    full = recipe.task.num_training_points
    assert isinstance(recipe.optim, IVONConfig)
    for values in product(*grid.values()):
        cell = dict(zip(grid, values))
        here = preset(name, cell).task.num_training_points
        ess = recipe.optim.effective_sample_size(full) * here / full
        yield Condition(where={"preset": name, **cell}, set={"optim.ess": ess})
