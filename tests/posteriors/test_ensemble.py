"""Independently trained networks as samples."""

from dataclasses import replace

import pytest
import torch
from small_tasks import one_parameter_run

from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.model import build_model
from epigrok.posteriors import Ensemble


def test_its_samples_are_the_weights_of_its_members() -> None:
    config = one_parameter_run()
    models = [build_model(replace(config, run_seed=seed)) for seed in range(3)]
    ensemble = Ensemble.of(models)
    assert (ensemble.name, ensemble.max_samples) == ("ensemble", 3)
    for index, model in enumerate(models):
        sample = ensemble.sample(index)
        assert sample.keys() == dict(model.named_parameters()).keys()
        assert all(torch.equal(sample[n], weights) for n, weights in model.named_parameters())


def test_it_needs_members_of_one_shape() -> None:
    with pytest.raises(UserError, match="same architecture"):
        Ensemble.of([])
    models = [build_model(config) for config in (preset("classic"), one_parameter_run())]
    with pytest.raises(UserError, match="same architecture"):
        Ensemble.of(models)
