"""Dropout that stays on while predicting."""

import torch
from torch import Tensor, nn

import epigrok
from epigrok.posteriors import MCDropout, Posterior, logits_of

INPUTS = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


def test_a_sample_is_the_network_with_dropout_under_a_seed() -> None:
    model = network().eval()
    sample = MCDropout.of(model).sample(3)
    model[2].train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sample.seed)
        expected = model(INPUTS)
    torch.testing.assert_close(logits_of(model, sample, INPUTS), expected)


def test_it_is_a_posterior_whose_samples_depend_on_seed_and_index_alone() -> None:
    model = network()
    posterior = MCDropout.of(model)
    assert isinstance(posterior, Posterior)

    def logits(index: int, seed: int = 0) -> Tensor:
        return logits_of(model, MCDropout.of(model, seed).sample(index), INPUTS)

    assert torch.equal(logits(1), logits(1))
    assert not torch.equal(logits(1), logits(2))
    assert not torch.equal(logits(1), logits(1, seed=1))


def test_batch_norm_keeps_its_averages_and_is_not_part_of_the_noise() -> None:
    model = network().train()
    averages = model[1].running_mean.clone()
    alone = epigrok.predict(model, MCDropout.of(model), INPUTS[:1]).probs
    among = epigrok.predict(model, MCDropout.of(model), INPUTS[:1].repeat(5, 1)).probs
    assert torch.equal(model[1].running_mean, averages)
    # The masks of five rows are those of the first row and others.
    torch.testing.assert_close(alone, among[:1])


def test_without_dropout_there_is_no_uncertainty() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    assert epigrok.predict(model, MCDropout.of(model), INPUTS).epistemic.eq(0).all()


def test_dropout_inside_attention_counts_too() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    layer.self_attn.dropout = 0.5
    model = nn.Sequential(layer, nn.Linear(4, 3))
    assert epigrok.predict(model, MCDropout.of(model), INPUTS[None]).epistemic.min() > 0


def test_further_training_does_not_change_it() -> None:
    model = network()
    posterior = MCDropout.of(model)
    before = logits_of(model, posterior.sample(0), INPUTS)
    nn.init.zeros_(model[3].weight)
    assert torch.equal(logits_of(model, posterior.sample(0), INPUTS), before)
    assert repr(posterior) == "MCDropout(9 tensors, seed=0)"
