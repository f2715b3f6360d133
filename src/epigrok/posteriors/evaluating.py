"""Calling a network without leaving a trace on it, or on training."""

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards everything is as before.

    That is every module's mode, every buffer and every `requires_grad` of the model, and the global
    generators of torch, NumPy and Python; also after an exception. A compiled model is called as it
    was written: compiling it anew for another mode and other weights would take longer.
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
        generators = python_and_numpy_left_alone()
        with generators_of_torch, generators, torch.no_grad(), _uncompiled(model):
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


def _uncompiled(model: nn.Module) -> AbstractContextManager[object]:
    # Asked by name, because importing the compiler takes seconds.
    is_compiled = any(
        type(module).__name__ == "OptimizedModule" or module._compiled_call_impl is not None
        for module in model.modules()
    )
    return torch.compiler.set_stance("force_eager") if is_compiled else nullcontext()


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
