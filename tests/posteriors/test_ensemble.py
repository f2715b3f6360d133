"""Independently trained networks as samples."""

from dataclasses import replace

import pytest
import torch
from small_tasks import one_parameter_run
from torch import Tensor, nn

from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.model import build_model
from epigrok.posteriors import Ensemble, logits_of


def test_its_samples_are_the_weights_of_its_members() -> None:
    config = one_parameter_run()
    models = [build_model(replace(config, run_seed=seed)) for seed in range(3)]
    ensemble = Ensemble.of(models)
    assert (ensemble.name, ensemble.max_samples) == ("ensemble", 3)
    for index, model in enumerate(models):
        sample = ensemble.sample(index)
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        assert sample.keys() == tensors.keys()
        assert all(torch.equal(sample[name], tensor) for name, tensor in tensors.items())


def test_members_keep_their_buffers() -> None:
    """Each has averages of its own for batch norm, and those belong to its weights."""
    inputs, models = torch.randn(64, 3), []
    for seed in range(2):
        torch.manual_seed(seed)
        models.append(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)))
        models[-1].train()(5.0 * inputs + seed)
    ensemble = Ensemble.of(models)
    for index, model in enumerate(models):
        found = logits_of(models[0], ensemble.sample(index), inputs)
        assert torch.equal(found, model.eval()(inputs))


def test_a_model_that_changes_its_buffers_leaves_the_members_alone() -> None:
    class Counting(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + self.calls.add_(1.0)

    model = Counting(3, 4)
    model.register_buffer("calls", torch.zeros(()))
    ensemble = Ensemble.of([model])
    first, second = (logits_of(model, ensemble.sample(0), torch.ones(5, 3)) for _ in range(2))
    assert torch.equal(first, second)
    assert ensemble.sample(0)["calls"] == 0.0


def test_it_needs_members_of_one_shape() -> None:
    with pytest.raises(UserError, match="same architecture"):
        Ensemble.of([])
    models = [build_model(config) for config in (preset("classic"), one_parameter_run())]
    with pytest.raises(UserError, match="same architecture"):
        Ensemble.of(models)
