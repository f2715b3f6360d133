"""Which parameters each optimiser moves, how fast, and which it decays."""

from dataclasses import replace

import pytest
import torch
from small_tasks import TINY_IVON, one_parameter_run
from torch import Tensor

from epigrok.config import AdamWConfig, MuonConfig, OptimiserConfig
from epigrok.model import Network, build_model
from epigrok.training.optimiser import build_optimisers, set_learning_rates

OPTIMISERS: list[OptimiserConfig] = [
    AdamWConfig(lr=0.2, weight_decay=0.3),
    MuonConfig(lr=0.1, adamw_lr=0.2, weight_decay=0.3, adamw_weight_decay=0.3),
    TINY_IVON,
]


def built(optim: OptimiserConfig) -> tuple[Network, list[torch.optim.Optimizer]]:
    config = one_parameter_run(optim=optim)
    model = build_model(config)
    return model, build_optimisers(model, config)


@pytest.mark.parametrize("optim", OPTIMISERS, ids=lambda optim: type(optim).__name__)
def test_every_parameter_is_moved_once_and_vectors_are_never_decayed(
    optim: OptimiserConfig,
) -> None:
    model, optimisers = built(optim)
    groups = [group for optimiser in optimisers for group in optimiser.param_groups]
    moved = [weights for group in groups for weights in group["params"]]
    assert sorted(map(id, moved)) == sorted(map(id, model.parameters()))
    for group in groups:
        decay = 0.0 if any(w.ndim == 1 for w in group["params"]) else optim.weight_decay
        assert group["weight_decay"] == decay


def test_muon_moves_the_hidden_matrices_only() -> None:
    model, (muon, _) = built(OPTIMISERS[1])
    assert isinstance(muon, torch.optim.Muon)
    named = dict(model.named_parameters())
    hidden = {id(named[name]) for name in model.hidden_matrices()}
    assert {id(weights) for weights in muon.param_groups[0]["params"]} == hidden
    assert id(model.head_weight) not in hidden


@pytest.mark.parametrize("optim", OPTIMISERS, ids=lambda optim: type(optim).__name__)
def test_learning_rates_are_shares_of_their_peaks(optim: OptimiserConfig) -> None:
    _, optimisers = built(optim)
    before = [g["lr"] for o in optimisers for g in o.param_groups]
    for scale in (0.5, 0.1):
        set_learning_rates(optimisers, scale)
    rates = [float(g["lr"]) for o in optimisers for g in o.param_groups]
    peaks = [0.1, 0.2, 0.2] if isinstance(optim, MuonConfig) else [optim.lr] * 2
    assert rates == pytest.approx([0.1 * peak for peak in peaks])
    for old, group in zip(before, (g for o in optimisers for g in o.param_groups), strict=True):
        # A captured step reads the rate where it was.
        assert not isinstance(old, Tensor) or old is group["lr"]


def test_ivon_takes_the_training_set_for_its_sample_size_unless_told() -> None:
    _, (fixed,) = built(TINY_IVON)
    assert {group["ess"] for group in fixed.param_groups} == {1e4}
    _, (automatic,) = built(replace(TINY_IVON, ess="auto"))
    assert {group["ess"] for group in automatic.param_groups} == {4.0 * 5.0}
