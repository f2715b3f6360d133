"""A model can be called without a trace on it, on random numbers or on training."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from epigrok.posteriors import evaluating

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


def numpy_state() -> list[int]:
    return np.random.get_state()[1].tolist()


def restless() -> nn.Module:
    """A network whose every call changes its buffers and draws random numbers."""

    class Restless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))
            self.head = nn.Linear(6, 3).requires_grad_(False)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls = self.calls + 1 + random.random() + np.random.rand()
            return self.head(
                self.layers(x + torch.randn(()) + self.layers[1].running_mean.add_(1)[0])
            )

    return Restless()


@pytest.mark.parametrize("fails", [False, True])
def test_evaluating_leaves_no_trace(fails: bool) -> None:
    model = restless().train()
    model.head.eval()
    buffers = dict(model.named_buffers())
    values = {name: buffer.clone() for name, buffer in buffers.items()}
    modes = [module.training for module in model.modules()]
    state, of_python, of_numpy = torch.get_rng_state(), random.getstate(), numpy_state()
    try:
        with evaluating(model):
            assert not any(module.training for module in model.modules())
            model.requires_grad_(False)
            assert not model(X).requires_grad
            if fails:
                raise RuntimeError
    except RuntimeError:
        assert fails
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert (random.getstate(), numpy_state()) == (of_python, of_numpy)
    assert torch.is_grad_enabled()
    assert all(buffers[name] is buffer for name, buffer in model.named_buffers())
    assert all(torch.equal(buffer, values[name]) for name, buffer in model.named_buffers())
    trainable = [name for name, weights in model.named_parameters() if weights.requires_grad]
    assert trainable
    assert not any(name.startswith("head") for name in trainable)


@pytest.mark.parametrize("number", [0.5, torch.nan])
def test_evaluating_between_forward_and_backward_does_no_harm(number: float) -> None:
    """Not even to a buffer that is not a number, and so unlike itself."""
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
    model.register_buffer("scale", torch.tensor([number, 1.0]))
    model.register_forward_hook(lambda model, inputs, output: output * model.scale[1:] ** 2)
    loss = model(X).sum()
    with evaluating(model):
        model(X)
    loss.backward()
    assert model[0].weight.grad is not None


@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_is_not_compiled_again(in_place: bool) -> None:
    compilations = 0

    def backend(graph: torch.fx.GraphModule, examples: list[Tensor]) -> torch.fx.GraphModule:
        nonlocal compilations
        compilations += 1
        return graph

    class Dropping(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(super().forward(x), 0.5, self.training)

    model: nn.Module = Dropping(4, 3)
    expected = copy.deepcopy(model).eval()(X)
    if in_place:
        model.compile(backend=backend)
    else:
        model = torch.compile(model, backend=backend)  # type: ignore[assignment]
    model(X)
    before = compilations
    with evaluating(model):
        assert torch.equal(model(X[:3]), expected[:3])
    model(X)
    assert compilations == before > 0
