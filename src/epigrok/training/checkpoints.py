"""Checkpoints: `step-N/` with weights, what resuming needs, and digests of both.

The newest two can be resumed from; a log-spaced ladder keeps weights alone. Nothing is ever
unpickled except with `weights_only=True`.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from epigrok.checkpoint_files import (
    DEVIATIONS,
    DIGESTS,
    EXTENTS,
    RESUME,
    WEIGHTS,
    checkpoint_path,
    checkpoint_steps,
    problem_with_checkpoint,
    steps_with,
    write_digests,
)
from epigrok.errors import UserError
from epigrok.files import read_json
from epigrok.posteriors import DiagonalGaussian
from epigrok.posteriors.gaussian import frozen_tensors
from epigrok.training.loop import TrainState
from epigrok.workspace import Workspace, WorkspaceGoneError

NUM_RESUMABLE = 2
LADDER_START = 0.01
"""Share of the run at which the ladder's second rung stands; the first is step 0."""


def ladder_steps(num_steps: int, num_rungs: int) -> list[int]:
    """Steps whose weights are kept: `num_rungs` of them, 0, then log-spaced up to the last.

    A run with fewer steps than that keeps the weights of every step.
    """
    num_between = min(num_rungs, num_steps + 1) - 2
    ratio = (1.0 / LADDER_START) ** (1.0 / max(1, num_between))
    steps = [0]
    for k in range(num_between):
        spaced = round(num_steps * LADDER_START * ratio**k)
        # In a short run several rungs would round to one step; keep them distinct.
        steps.append(min(max(spaced, steps[-1] + 1), num_steps - num_between + k))
    return [*steps, num_steps]


@dataclass(frozen=True)
class Restored:
    """A checkpoint that training resumes from."""

    step: int
    extents: dict[str, Any]
    """The extent of each table when the checkpoint was saved."""


def write_checkpoint(
    workspace: Workspace,
    root: Path,
    state: TrainState,
    ladder: list[int],
    extents: Mapping[str, Any],
) -> None:
    """Save the state as `root/step-N`, with the extents of tables, and drop what is not needed."""
    posterior = state.carried_posterior()
    resume = {
        "step": state.step,
        "optimisers": [optimiser.state_dict() for optimiser in state.optimisers],
    }
    files: dict[str, Callable[[Path], object]] = {
        WEIGHTS: lambda path: save_file(_contiguous(state.model.state_dict()), path),
        RESUME: lambda path: torch.save(resume, path),
        EXTENTS: lambda path: path.write_text(json.dumps(extents)),
    }
    if posterior is not None:
        deviation = posterior.deviation
        files[DEVIATIONS] = lambda path: save_file(_contiguous(deviation), path)
    files[DIGESTS] = write_digests
    try:
        workspace.write_directory(checkpoint_path(root, state.step), files)
    except SafetensorError as error:
        # Safetensors raises this when the disk is full.
        raise OSError(f"the checkpoint of step {state.step} cannot be written: {error}") from error
    except RuntimeError as error:
        if isinstance(error, WorkspaceGoneError):
            raise
        raise OSError(f"the checkpoint of step {state.step} cannot be written: {error}") from error
    keep_resumable(workspace, root, ladder, NUM_RESUMABLE)


def keep_resumable(workspace: Workspace, root: Path, ladder: list[int], number: int) -> None:
    """Keep the newest `number` checkpoints to resume from, and the weights on the ladder."""
    steps = _resumable_steps(root)
    newest = steps[len(steps) - number :]
    for step in set(steps) - set(newest):
        workspace.remove(checkpoint_path(root, step) / RESUME)
    # All other steps, because a kill may have left one half removed.
    for step in set(steps_with(root)) - {*newest, *ladder}:
        workspace.remove(checkpoint_path(root, step))


def restore_newest(workspace: Workspace, root: Path, state: TrainState) -> Restored | None:
    """Put the newest intact checkpoint into `state`; None if there is none to resume from.

    A damaged checkpoint is moved aside. A reading error proves no damage and is raised.
    """
    steps = _resumable_steps(root)
    while steps:
        directory = checkpoint_path(root, steps.pop())
        problem = problem_with_checkpoint(directory)
        if problem is None:
            _restore(directory, state)
            return Restored(state.step, read_json(directory / EXTENTS))
        # If it stayed, it would count as one of the newest, and a good one would be removed.
        aside = next(
            p for n in count() if not (p := root / f"damaged-{directory.name}-{n}").exists()
        )
        workspace.move(directory, aside)
        warnings.warn(
            f"checkpoint {directory} is damaged ({problem}) and was moved to {aside.name}",
            stacklevel=2,
        )
    return None


def load_weights(root: Path, step: int) -> dict[str, Tensor]:
    """The weights of `step`, on the CPU, as they were written."""
    steps = checkpoint_steps(root)
    if step not in steps:
        raise UserError(f"no checkpoint of step {step} in {root}; there are: {steps}")
    return _tensors(checkpoint_path(root, step) / WEIGHTS)


def load_carried_posterior(root: Path, step: int, model: nn.Module) -> DiagonalGaussian | None:
    """The posterior that the optimiser carried at `step`, around the weights of `model`."""
    path = checkpoint_path(root, step) / DEVIATIONS
    if not path.exists():
        return None
    mean = frozen_tensors(model)
    device = next(iter(mean.values())).device
    return DiagonalGaussian("ivon", mean, _tensors(path, device))


def _tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    problem = problem_with_checkpoint(path.parent, (path.name,))
    if problem is not None:
        raise UserError(f"checkpoint {path.parent} is damaged: {problem}")
    try:
        return load_file(path, device=str(device))
    except (SafetensorError, OSError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    # Parameters may be views into one buffer; the file needs separate tensors.
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def _restore(directory: Path, state: TrainState) -> None:
    state.model.load_state_dict(load_file(directory / WEIGHTS))
    device = next(state.model.parameters()).device
    resume = torch.load(directory / RESUME, map_location=device, weights_only=True)
    for optimiser, saved in zip(state.optimisers, resume["optimisers"], strict=True):
        optimiser.load_state_dict(saved)
    state.step = resume["step"]


def _resumable_steps(root: Path) -> list[int]:
    return sorted(steps_with(root, RESUME))
