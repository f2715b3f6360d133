"""Sweeps that ask what decides whether IVON generalises; choose on these seeds, confirm on others.

In most steps momentum over the Hessian exceeds the clip radius, so a step is lr·clip_radius with
the sign of momentum plus decay: weights shrink wherever δ·|w| exceeds the momentum. A recipe is
therefore set by the largest step (lr·clip_radius), by decay against the gradients' size, and by
how wide the posterior is against the weights (σ = 1/√(ESS·(h + δ)), and weights begin at 0.05).
"""

from typing import Any

from epigrok.sweeps.description import Condition, Sweep

_BASE = "as it is"
_SMALL: dict[str, dict[str, Any]] = {
    "more decay": {"optim.weight_decay": 3e-4},
    # Decay then stays as strong against gradients in the transition as it was before.
    "gradients cut": {"optim.clip_norm": 0.06},
    # The same σ and decay, but steps in proportion to small gradients instead of their signs.
    "larger Hessian": {"optim.hess_init": 1e-2, "optim.ess": 1e9},
    # On `icl-tiny-ivon` noise decides: a narrow posterior memorises.
    "wider posterior": {"optim.ess": 1e8},
    "long momentum": {"optim.betas": [0.97, 0.99999]},
    "long momentum, wider posterior": {"optim.betas": [0.97, 0.99999], "optim.ess": 1e8},
    "inputs apart": {"task.shares_inputs": False},
}
_TINY: dict[str, dict[str, Any]] = {
    "narrow posterior": {"optim.ess": 1e10},
    "wider posterior": {"optim.ess": 3e6},
    "longer momentum": {"optim.betas": [0.95, 0.9995]},
    "long momentum, twice as long": {"optim.betas": [0.97, 0.9995], "num_steps": 8000},
}


def ivon_recipes() -> Sweep:
    """Eight recipes around `icl-small-ivon`, eight seeds each, 14,000 steps.

    Each changes what its name says. By 8,000 steps every run so far had left the plateau, if it
    ever did.
    """
    return Sweep(
        name="ivon-recipes",
        methods=("icl-small-ivon",),
        variants=(_BASE, *_SMALL),
        seeds=tuple(range(8)),
        overrides={
            "num_steps": 14_000,
            "evaluation.posteriors": ["point", "ivon"],
            "evaluation.every": 1000,
            "evaluation.num_sequences": 1024,
            "evaluation.num_sampled_sequences": 256,
            "num_ladder_checkpoints": 2,
        },
        conditions=_conditions(_SMALL),
    )


def ivon_recipes_tiny() -> Sweep:
    """Five recipes around `icl-tiny-ivon`, five seeds each, for the cores of a CPU."""
    return Sweep(
        name="ivon-recipes-tiny",
        methods=("icl-tiny-ivon",),
        variants=(_BASE, *_TINY),
        seeds=(0, 1, 2, 3, 4),
        overrides={
            "evaluation.posteriors": ["point", "ivon"],
            "evaluation.every": 500,
            "num_ladder_checkpoints": 2,
        },
        conditions=_conditions(_TINY),
    )


def _conditions(recipes: dict[str, dict[str, Any]]) -> tuple[Condition, ...]:
    return tuple(Condition(where={"variant": v}, set=changes) for v, changes in recipes.items())
