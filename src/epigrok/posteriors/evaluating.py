"""Calling a network without leaving a trace on it, or on training."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards everything is as before.

    That is every module's mode, every buffer and every `requires_grad` of the model, and the global
    generators of torch, NumPy and Python; also after an exception.
    """
    modes = [(module, module.training) for module in model.modules()]
    needs_gradient = [(weights, weights.requires_grad) for weights in model.parameters()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    # A GPU has a generator of its own.
    tensors = [weights for weights, _ in needs_gradient] + [buffer for _, _, buffer, _ in buffers]
    gpus = sorted({tensor.device.index for tensor in tensors if tensor.is_cuda})
    try:
        generators_of_torch = torch.random.fork_rng(devices=gpus)
        with generators_of_torch, python_and_numpy_left_alone(), torch.no_grad():
            model.eval()
            yield
    finally:
        for module, was_training in modes:
            module.training = was_training
        for weights, needed in needs_gradient:
            weights.requires_grad_(needed)
        for module, name, buffer, values in buffers:
            # A model may replace a buffer as well as change it. One that did not change is left
            # alone: writing to it would spoil a backward pass that still needs it.
            module._buffers[name] = buffer
            if not _is_same(buffer, values):
                buffer.detach().copy_(values)


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether all numbers are the same; what is not a number is like itself here."""
    return torch.equal(one, other) or bool(((one == other) | one.isnan() & other.isnan()).all())


@contextmanager
def python_and_numpy_left_alone() -> Iterator[None]:
    """Afterwards their global generators are as before."""
    python, of_numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(of_numpy)
