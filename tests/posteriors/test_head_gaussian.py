"""What the Laplace posteriors share: a fit to any network, and samples of its head alone."""

import pytest
import torch
from torch import nn

from epigrok.posteriors import DiagonalLaplace, ExactLaplace, LastLayerLaplace, logits_of
from epigrok.posteriors.head import Head
from epigrok.posteriors.head_gaussian import HeadGaussian

METHODS = (DiagonalLaplace, ExactLaplace, LastLayerLaplace)
INPUTS = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(40) % 4


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4))


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_sees_the_features_and_answers_of_every_batch(method: type[HeadGaussian]) -> None:
    model = network()
    batches = [(INPUTS[:25], LABELS[:25]), (INPUTS[25:], LABELS[25:])]
    features = model[:2](INPUTS).detach()
    fitted = method.fit(model, batches, prior=2.0)
    by_hand = method.from_answers(Head.of(model[2]), [(features, LABELS)], 2.0)
    assert (fitted.num_answers, fitted.prior_precision) == (40, 2.0)
    assert fitted.facts["log_evidence"] == pytest.approx(by_hand.facts["log_evidence"], rel=1e-6)
    torch.testing.assert_close(fitted.sample_head(3), by_hand.sample_head(3))


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_replaces_the_head_and_nothing_else(method: type[HeadGaussian]) -> None:
    model = network()
    posterior = method.fit(model, [(INPUTS, LABELS)], prior=2.0)
    sample = posterior.sample(1)
    assert set(sample.keys()) == {"2.weight", "2.bias"}
    matrix = posterior.sample_head(1).to(torch.float32)
    torch.testing.assert_close(sample["2.weight"], matrix[:, :-1])
    torch.testing.assert_close(sample["2.bias"], matrix[:, -1])
    features = model[:2](INPUTS)
    expected = features @ matrix[:, :-1].T + matrix[:, -1]
    torch.testing.assert_close(logits_of(model, sample, INPUTS), expected)
    torch.testing.assert_close(posterior.head_logits(features, 1), expected)
    assert posterior.head.weight_name == "2.weight"
    assert repr(posterior).startswith(f"{method.__name__}('")
    assert "prior precision 2, 40 answers" in repr(posterior)
