"""Noise of a fixed size: the control."""

import pytest
import torch
from torch import nn
from trained_run import Trained

from epigrok.posteriors import WeightNoise


def test_relative_noise_is_a_share_of_each_matrix_own_spread(trained: Trained) -> None:
    noise = WeightNoise.relative(trained.model, 0.1)
    parameters = dict(trained.model.named_parameters())
    matrices = {name for name, weights in parameters.items() if weights.ndim == 2}
    assert noise.deviation.keys() == matrices
    for name in matrices:
        assert noise.deviation[name].item() == pytest.approx(0.1 * parameters[name].std().item())
    sample = noise.sample(4)
    assert torch.equal(sample["norm.weight"], parameters["norm.weight"])


def test_scales_share_their_random_numbers(trained: Trained) -> None:
    small, large = (WeightNoise.relative(trained.model, scale).sample(4) for scale in (0.01, 0.1))
    weights = dict(trained.model.named_parameters())["blocks.0.query.weight"]
    changes = [sample["blocks.0.query.weight"] - weights for sample in (small, large)]
    torch.testing.assert_close(10 * changes[0], changes[1], rtol=1e-3, atol=1e-5)


def test_isotropic_noise_is_alike_in_all_matrices(trained: Trained) -> None:
    noise = WeightNoise.isotropic(trained.model, 0.25)
    assert {deviation.item() for deviation in noise.deviation.values()} == {0.25}


def test_whole_numbers_among_the_parameters_get_no_noise() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    model.register_parameter("places", nn.Parameter(torch.eye(3).long(), requires_grad=False))
    assert WeightNoise.relative(model, 0.5).deviation.keys() == {"0.weight"}


def test_a_matrix_of_one_entry_has_no_spread_to_take_a_share_of() -> None:
    model = nn.Linear(1, 1)
    sample = WeightNoise.relative(model, 0.5).sample(0)
    assert torch.equal(sample["weight"], model.weight)
