"""What our step is measured against is the same training."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from epigrok.bench.plain_training import plain_logits, plain_steps
from epigrok.bench.speed import comparable
from epigrok.config import preset
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps


@pytest.mark.parametrize("name", ["classic", "icl-tiny"])
def test_plain_training_learns_the_same(name: str) -> None:
    config = replace(comparable(preset(name)), batch_size=32)
    family = build_family(config, sample_world(config.task, 0))
    ours = training_steps(initial_state(config), family, config)
    plain = plain_steps(initial_state(config), family, config, compiled=False)
    our_losses = torch.stack([record.loss for record in islice(ours, 6)])
    torch.testing.assert_close(our_losses, torch.stack(list(islice(plain, 6))))
    assert len(set(our_losses.tolist())) == 6


@pytest.mark.parametrize("name", ["classic", "icl-tiny"])
def test_plain_logits_are_the_models_own(name: str) -> None:
    config = replace(preset(name), batch_size=4)
    tokens_BL = build_family(config, sample_world(config.task, 0)).training_batch(0).tokens_BL
    model = initial_state(config).model
    torch.testing.assert_close(plain_logits(model, tokens_BL), model(tokens_BL))
