"""Muon on stacks of matrices against torch's own, one matrix at a time."""

import pytest
import torch
from torch import nn

from epigrok.random_streams import normal, stream_key
from epigrok.training.stacked_muon import StackedMuon, orthogonalised

SHAPES = ((8, 8), (16, 8), (8, 16), (8, 8))
COEFFICIENTS = (3.4445, -4.775, 2.0315)


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(normal(stream_key(0, str(i)), shape)) for i, shape in enumerate(SHAPES)]


def take_steps(optimiser: torch.optim.Optimizer, number: int, first: int = 0) -> None:
    for step in range(first, first + number):
        for index, weights in enumerate(optimiser.param_groups[0]["params"]):
            weights.grad = normal(stream_key(1, str(index)), tuple(weights.shape), step)
        optimiser.step()


@pytest.mark.parametrize("lr", [0.02, torch.tensor(0.02)])
def test_it_moves_as_torch_does(lr: float | torch.Tensor) -> None:
    ours, theirs = parameters(), parameters()
    take_steps(StackedMuon(ours, lr=lr, weight_decay=0.1), 10)
    take_steps(torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1), 10)
    for one, other, start in zip(ours, theirs, parameters()):
        # Orthogonalisation is in bfloat16, where the order of sums decides the last bits.
        assert (one - other).norm() < 0.01 * (other - start).norm()


def test_either_goes_on_from_the_other() -> None:
    ours, theirs = parameters(), parameters()
    first = torch.optim.Muon(ours, lr=0.02)
    take_steps(first, 3)
    second = StackedMuon(ours, lr=0.02)
    second.load_state_dict(first.state_dict())
    take_steps(second, 3, first=3)
    take_steps(torch.optim.Muon(theirs, lr=0.02), 6)
    for one, other, start in zip(ours, theirs, parameters()):
        assert (one - other).norm() < 0.01 * (other - start).norm()


def test_singular_values_come_near_one() -> None:
    matrices = [normal(stream_key(2, str(i)), shape) for i, shape in enumerate(SHAPES)]
    for matrix, result in zip(matrices, orthogonalised(matrices, COEFFICIENTS, 5, 1e-7)):
        assert result.shape == matrix.shape
        assert result.dtype == matrix.dtype
        values = torch.linalg.svdvals(result)
        assert values.max() < 1.3
        assert values.median() > 0.6


def test_zeros_at_the_ends_of_shorter_matrices_change_nothing() -> None:
    matrices = [normal(stream_key(2, str(i)), shape) for i, shape in enumerate(SHAPES)]
    together = orthogonalised(matrices, COEFFICIENTS, 5, 1e-7)
    for matrix, result in zip(matrices, together):
        (alone,) = orthogonalised([matrix], COEFFICIENTS, 5, 1e-7)
        assert (result - alone).norm() < 0.01 * alone.norm()


def test_a_matrix_without_gradient_stays() -> None:
    weights = parameters()
    optimiser = StackedMuon(weights, lr=0.02)
    weights[0].grad = torch.ones_like(weights[0])
    optimiser.step()
    assert torch.equal(weights[3], parameters()[3])
    assert not torch.equal(weights[0], parameters()[0])
