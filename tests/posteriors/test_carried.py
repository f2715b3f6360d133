"""Posteriors of runs trained with IVON."""

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
import torch
from small_tasks import TINY_IVON, one_parameter_run
from trained_run import Trained

from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.evaluation import tracked_posteriors
from epigrok.posteriors import DiagonalGaussian, require_posteriors


@pytest.mark.parametrize("name", ["ivon", "ivon-isotropic"])
def test_they_need_a_run_trained_with_ivon(name: str, trained: Trained) -> None:
    require_posteriors(preset("classic-ivon"), (name,))
    message = f"'{name}' exists only for runs trained with IVON"
    with pytest.raises(UserError, match=message):
        require_posteriors(preset("classic"), (name,))
    config, carried = one_parameter_run(), trained.state.carried_posterior()
    with pytest.raises(UserError, match=message):
        tracked_posteriors(config, trained.model, trained.sets["id_train"], carried, (name,))


def test_ivon_is_what_the_optimiser_carries(trained: Trained) -> None:
    (found,) = trained.fitted("ivon")
    carried = trained.state.carried_posterior()
    assert isinstance(found, DiagonalGaussian)
    for name, deviation in carried.deviation.items():
        assert torch.equal(found.deviation[name], deviation)
        assert torch.equal(found.mean[name], carried.mean[name])


def test_ivon_is_refused_where_only_its_mean_was_kept(trained: Trained) -> None:
    with pytest.raises(UserError, match="not kept with this checkpoint"):
        tracked_posteriors(trained.config, trained.model, trained.sets["id_train"], None, ("ivon",))


@pytest.mark.parametrize("ess", [1e4, "auto"])
def test_its_control_has_the_width_that_ivon_starts_with(ess: Any, trained: Trained) -> None:
    config = replace(trained.config, optim=replace(TINY_IVON, ess=ess))
    (control,) = tracked_posteriors(
        config, trained.model, trained.sets["id_train"], None, ("ivon-isotropic",)
    )
    assert isinstance(control, DiagonalGaussian)
    num_points = 20 if ess == "auto" else ess
    expected = 1 / sqrt(num_points * (TINY_IVON.hess_init + TINY_IVON.weight_decay))
    matrices = {name for name, weights in trained.model.named_parameters() if weights.ndim == 2}
    assert control.deviation.keys() == matrices
    assert [d.item() for d in control.deviation.values()] == pytest.approx(
        [expected] * len(matrices)
    )
