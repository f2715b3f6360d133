"""Sweeps that ask what decides whether IVON generalises; choose on these seeds, confirm on others.

In most steps momentum over the Hessian exceeds the clip radius, so a step is lr·clip_radius with
the sign of momentum plus decay: weights shrink wherever δ·|w| exceeds the momentum. A recipe is
therefore set by the largest step (lr·clip_radius), by decay against the gradients' size, and by
how wide the posterior is against the weights (σ = 1/√(ESS·(h + δ)), and weights begin at 0.05).
"""

from typing import Any

from epigrok.sweeps.description import Condition, Sweep

_BASE = "as it is"
_APART = {"task.shares_inputs": False}
_SMALL: dict[str, dict[str, Any]] = {
    # On `icl-tiny-ivon` noise decides: a narrow posterior memorises.
    "wider posterior": {"optim.ess": 1e8},
    "wide posterior": {"optim.ess": 1e7},
    "widest posterior": {"optim.ess": 3e6},
    "wide posterior, larger steps": {"optim.ess": 1e7, "optim.clip_radius": 3e-3},
    # Decay then stays as strong against gradients in the transition as it was before.
    "wide posterior, gradients cut": {"optim.ess": 1e7, "optim.clip_norm": 0.06},
    "wide posterior, inputs apart": {"optim.ess": 1e7, **_APART},
    "as tried on icl-tiny-ivon": {
        "optim.ess": 3e6,
        "optim.lr": 0.2,
        "optim.clip_radius": 0.01,
        "optim.weight_decay": 1e-4,
        "optim.betas": [0.9, 0.9995],
    },
    # Of those above, inputs apart helped most on the one seed that was tried.
    "inputs apart": _APART,
    "inputs apart, larger steps": {"optim.clip_radius": 3e-3, **_APART},
    "inputs apart, more decay": {"optim.weight_decay": 5e-4, **_APART},
    "inputs apart, longer momentum": {"optim.betas": [0.97, 0.99999], **_APART},
    "wider posterior, inputs apart": {"optim.ess": 1e8, **_APART},
    "wider posterior, inputs apart, larger steps": {
        "optim.ess": 1e8,
        "optim.clip_radius": 3e-3,
        **_APART,
    },
    "wider posterior, inputs apart, more decay": {
        "optim.ess": 1e8,
        "optim.weight_decay": 5e-4,
        **_APART,
    },
    "wide posterior, inputs apart, larger steps": {
        "optim.ess": 1e7,
        "optim.clip_radius": 3e-3,
        **_APART,
    },
}
_TINY: dict[str, dict[str, Any]] = {
    "narrow posterior": {"optim.ess": 1e10},
    "wider posterior": {"optim.ess": 3e6},
    "longer momentum": {"optim.betas": [0.95, 0.9995]},
    "long momentum, twice as long": {"optim.betas": [0.97, 0.9995], "num_steps": 8000},
    # With the preset's decay some seeds of the longer momentum never fit.
    "longer momentum, warmed up": {
        "optim.betas": [0.95, 0.9995],
        "optim.ess": 3e6,
        "optim.weight_decay": 1e-4,
        "schedule.warmup_steps": 1000,
        "num_steps": 8000,
    },
}


def ivon_recipes() -> Sweep:
    """Sixteen recipes around `icl-small-ivon`, eight seeds each, 10,000 steps.

    Each changes what its name says. The length is that of `paper-small`; by 8,000 steps every run
    so far had left the plateau, if it ever did.
    """
    return Sweep(
        name="ivon-recipes",
        methods=("icl-small-ivon",),
        variants=(_BASE, *_SMALL),
        seeds=tuple(range(8)),
        overrides={
            "num_steps": 10_000,
            "evaluation.posteriors": ["point", "ivon"],
            "evaluation.every": 1000,
            "evaluation.num_sequences": 1024,
            "evaluation.num_sampled_sequences": 256,
            "num_ladder_checkpoints": 2,
        },
        conditions=_conditions(_SMALL),
    )


def ivon_recipes_tiny() -> Sweep:
    """Six recipes around `icl-tiny-ivon`, five seeds each, for the cores of a CPU."""
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
