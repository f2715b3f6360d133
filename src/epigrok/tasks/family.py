"""What training and evaluation need from a task, and the registry of families.

A task is a frozen dataclass of settings, and a family that turns them into sequences:

    @dataclass(frozen=True, kw_only=True)
    class MyTask(TaskConfig): …

    @register_task(MyTask)
    class MyFamily: …

Letters: A tasks, N inputs, B sequences, T examples in a sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from epigrok.config import RunConfig, Split, TaskConfig
from epigrok.config.checks import require
from epigrok.registry import Registry
from epigrok.tasks.sequences import Batch

World = dict[str, Tensor]
"""The tasks, inputs and hold-outs of a run; saved with it and never derived again."""


@runtime_checkable
class TaskFamily(Protocol):
    """Sequences of a task. Built as `Family(settings, world, batch_size, task_seed, run_seed)`."""

    @property
    def config(self) -> Any:
        """The settings."""
        ...

    @property
    def world(self) -> World:
        """The tasks, inputs and hold-outs."""
        ...

    @staticmethod
    def sample_world(config: Any, task_seed: int) -> World:
        """Draw the world; it depends on the settings and the task seed alone."""
        ...

    def training_batch(self, step: int | Tensor) -> Batch:
        """Batch `step`; it depends on the run seed and `step` alone."""
        ...

    def evaluation_batch(self, split: Split, num_sequences: int, num_examples: int) -> Batch:
        """The fixed sequences of `split`, with `num_examples` examples; the last is the query."""
        ...


@dataclass(frozen=True)
class Hypotheses:
    """All possible tasks as a table of answers: the hypotheses of the exact predictors."""

    answers_AN: Int[Tensor, "A N"]
    is_trained_A: Bool[Tensor, " A"]
    """Whether training showed each task."""

    @classmethod
    def of(cls, answers_AN: Int[Tensor, "A N"], trained: Int[Tensor, " _"]) -> "Hypotheses":
        """Hypotheses from a table of answers; `trained` are the indices of the training tasks."""
        is_trained_A = torch.zeros(len(answers_AN), dtype=torch.bool, device=answers_AN.device)
        is_trained_A[trained] = True
        return cls(answers_AN, is_trained_A)


@runtime_checkable
class InContextFamily(TaskFamily, Protocol):
    """A family whose hidden task can be inferred exactly, so that it has exact predictors."""

    def hypotheses(self) -> Hypotheses:
        """All possible tasks."""
        ...

    def observed(self, batch: Batch) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """Per example, the column of its input in the table of answers and the shown answer."""
        ...


_FAMILIES: Registry[type[Any]] = Registry("task", home="epigrok.tasks")
_Family = TypeVar("_Family", bound=type[Any])


def register_task(settings: type[TaskConfig]) -> Callable[[_Family], _Family]:
    """Register the decorated class as the family of tasks with these settings."""

    def register(family: _Family) -> _Family:
        _FAMILIES.add(settings.__name__, family)
        return family

    return register


def family_class(task: TaskConfig) -> type[Any]:
    """The class of a task's family."""
    return _FAMILIES.find(type(task).__name__)


def sample_world(task: TaskConfig, task_seed: int) -> World:
    """The tasks, inputs and hold-outs of `task_seed`."""
    world: World = family_class(task).sample_world(task, task_seed)
    return world


def build_family(config: RunConfig, world: World, device: torch.device | str = "cpu") -> TaskFamily:
    """The family of `config.task` over `world`, generating its sequences on `device`."""
    problem = _problem_with(world, sample_world(config.task, config.task_seed))
    require(problem is None, f"the world (world.safetensors of a run) is damaged: {problem}")
    world = {name: tensor.to(device) for name, tensor in world.items()}
    family: TaskFamily = family_class(config.task)(
        config.task, world, config.batch_size, config.task_seed, config.run_seed
    )
    return family


def _problem_with(world: World, drawn: World) -> str | None:
    """Why a world cannot be one of a task, given another of its worlds; None if it can."""
    if world.keys() != drawn.keys():
        return f"it holds {', '.join(sorted(world))}, not {', '.join(sorted(drawn))}"
    whole = [tensor for tensor in drawn.values() if tensor.dtype == torch.int64 and len(tensor)]
    lowest = min((int(tensor.min()) for tensor in whole), default=0)
    highest = max((int(tensor.max()) for tensor in whole), default=0)
    for name, found in world.items():
        expected = drawn[name]
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            forms = (f"{one.dtype} of shape {tuple(one.shape)}" for one in (found, expected))
            return f"its {name} is {', not '.join(forms)}"
        if found.dtype == torch.int64 and bool(((found < lowest) | (found > highest)).any()):
            return f"its {name} has a number outside {lowest} to {highest}"
    return None
