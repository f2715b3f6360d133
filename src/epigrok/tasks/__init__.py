"""Modular-arithmetic tasks: which exist, which are held out, and the rows they make."""

import torch
from torch import Tensor

from epigrok.config import ClassicTask, RunConfig, TaskConfig, TwoParameterTask
from epigrok.tasks.classic import ClassicFamily, sample_classic_world
from epigrok.tasks.hypotheses import Hypotheses, hypotheses, observed
from epigrok.tasks.one_parameter import OneParameterFamily, sample_one_parameter_world
from epigrok.tasks.parallelogram import parallelogram_tasks
from epigrok.tasks.sequences import Batch, TaskFamily, with_context_noise
from epigrok.tasks.two_parameter import TwoParameterFamily, sample_two_parameter_world

__all__ = [
    "Batch",
    "Hypotheses",
    "TaskFamily",
    "build_family",
    "hypotheses",
    "observed",
    "parallelogram_tasks",
    "sample_world",
    "with_context_noise",
]


def sample_world(config: TaskConfig, task_seed: int) -> dict[str, Tensor]:
    """The tasks, inputs and hold-outs of `task_seed`; saved with a run, never derived twice."""
    if isinstance(config, TwoParameterTask):
        return sample_two_parameter_world(config, task_seed)
    if isinstance(config, ClassicTask):
        return sample_classic_world(config, task_seed)
    return sample_one_parameter_world(config, task_seed)


def build_family(
    config: RunConfig, world: dict[str, Tensor], device: torch.device | str = "cpu"
) -> TaskFamily:
    """The family of `config.task` over `world`, generating its rows on `device`."""
    world = {name: tensor.to(device) for name, tensor in world.items()}
    seeds = (config.batch_size, config.task_seed, config.run_seed)
    if isinstance(config.task, TwoParameterTask):
        return TwoParameterFamily(config.task, world, *seeds)
    if isinstance(config.task, ClassicTask):
        return ClassicFamily(config.task, world, *seeds)
    return OneParameterFamily(config.task, world, *seeds)
