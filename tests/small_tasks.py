"""Runs on the smallest tasks that have every split, for tests that train or evaluate."""

from dataclasses import replace
from typing import Any

from tiny_run import tiny

from epigrok.config import (
    EvaluationConfig,
    IVONConfig,
    OneParameterTask,
    RunConfig,
    TransformerConfig,
    TwoParameterTask,
)
from epigrok.tasks import TaskFamily, build_family, sample_world
from epigrok.training import TrainState, training_steps

TINY_IVON = IVONConfig(
    lr=0.2, ess=1e4, hess_init=1e-2, weight_decay=3e-4, betas=(0.9, 0.99), clip_radius=0.01
)
_MODEL = TransformerConfig(
    num_layers=2,
    num_heads=2,
    width=16,
    feedforward_width=24,
    init_std=0.1,
    embedding_init_std=0.1,
)
_EVALUATION = EvaluationConfig(
    posteriors=("point", "weight-noise:0.1"),
    num_sequences=24,
    num_sampled_sequences=12,
    num_samples=3,
    num_final_samples=5,
)


def one_parameter_run(**changes: Any) -> RunConfig:
    """z = a·x mod 7 in context; `id_val` asks a single answer of each sequence."""
    config = tiny(
        _EVALUATION,
        task=OneParameterTask(modulus=7, num_train_tasks=4, num_ood_tasks=2, num_examples=4),
        model=_MODEL,
        num_steps=12,
        batch_size=16,
    )
    return replace(config, **changes)


def two_parameter_run(**changes: Any) -> RunConfig:
    """z = a·x + b·y mod 7 in context, with all four splits; all answers are asked."""
    task = TwoParameterTask(modulus=7, num_base_tasks=4, num_examples=5, train_fraction=0.6)
    return replace(one_parameter_run(task=task), **changes)


def family_of(config: RunConfig) -> TaskFamily:
    """The run's tasks."""
    return build_family(config, sample_world(config.task, config.task_seed))


def train_until(state: TrainState, config: RunConfig, step: int) -> None:
    """Take updates until `step` of them are taken."""
    for record in training_steps(state, family_of(config), config):
        if record.step == step:
            return
