"""The weights themselves as a posterior."""

import torch
from trained_run import Trained

from epigrok.posteriors import Point, logits_of


def test_it_predicts_what_the_network_does(trained: Trained) -> None:
    tokens = trained.sets["id_val"].batch.tokens_BL
    point = Point.of(trained.model)
    with torch.no_grad():
        expected = trained.model(tokens)
        features = trained.model.features(tokens)
    assert torch.equal(point.head_logits(features, 0), expected)
    torch.testing.assert_close(logits_of(trained.model, point.sample(0), tokens), expected)


def test_it_keeps_the_weights_it_was_made_of(trained_anew: Trained) -> None:
    point = Point.of(trained_anew.model)
    before = point.sample(0)["head"].clone()
    with torch.no_grad():
        trained_anew.model.head_weight.add_(1.0)
    assert torch.equal(point.sample(0)["head"], before)
