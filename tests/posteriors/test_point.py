"""The weights themselves as a posterior."""

import torch
from torch import nn
from trained_run import Trained

from epigrok.posteriors import Point, logits_of


def test_it_predicts_what_the_network_does(trained: Trained) -> None:
    tokens = trained.sets["id_val"].batch.tokens_BL
    point = Point.of(trained.model)
    with torch.no_grad():
        expected = trained.model(tokens)
    assert torch.equal(logits_of(trained.model, point.sample(0), tokens), expected)


def test_it_keeps_the_weights_and_buffers_it_was_made_of() -> None:
    model, inputs = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), torch.randn(5, 4)
    point = Point.of(model)
    before = logits_of(model, point.sample(0), inputs)
    model.train()(inputs)
    nn.init.zeros_(model[0].weight)
    assert torch.equal(logits_of(model, point.sample(0), inputs), before)
    assert repr(point) == "Point(7 tensors)"
