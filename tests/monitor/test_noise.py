"""Noise on the head and on the whole network, against a plain loop."""

import pytest
import torch
from torch import nn

from epigrok.monitor import ToleranceSettings, head_answers, network_answers
from epigrok.monitor.noise import NoisyNetwork, flip_scales, logit_noise
from epigrok.posteriors import head_inputs

SETTINGS = ToleranceSettings(num_draws=4)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 5)).eval()


def test_without_noise_the_answers_are_the_networks_own() -> None:
    model, inputs = network(), torch.randn(70, 4)
    own = model(inputs).argmax(dim=-1).expand(4, -1)
    assert torch.equal(head_answers(head_inputs(model, inputs), SETTINGS)(0.0), own)
    assert torch.equal(network_answers(model, inputs, SETTINGS)(0.0), own)


def test_noise_on_the_network_leaves_its_weights_alone() -> None:
    model, inputs = network(), torch.randn(70, 4)
    before = [parameter.clone() for parameter in model.parameters()]
    answers = network_answers(model, inputs, SETTINGS)
    first, again = answers(3.0), answers(3.0)
    assert torch.equal(first, again)
    assert not torch.equal(first, answers(0.0))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before))


def test_an_answer_flips_exactly_at_its_scale() -> None:
    inputs = head_inputs(network(), torch.randn(70, 4))
    answers, scales_SN = head_answers(inputs, SETTINGS), flip_scales(inputs, SETTINGS)
    own_SN = answers(0.0)
    for scale in (0.05, 0.3, 1.0):
        is_clear_SN = (scales_SN / scale - 1.0).abs() > 1e-3
        has_flipped_SN = answers(scale) != own_SN
        # Past its first flip an answer may come back at a larger noise, never before it.
        assert not (has_flipped_SN & is_clear_SN & (scales_SN > scale)).any()
        assert has_flipped_SN.any()


def test_noise_is_the_same_however_many_numbers_are_drawn_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, inputs = network(), torch.randn(70, 4)
    drawn = []
    # All at once; some parameters at once, and the largest alone; hardly any.
    for number in (2**24, 70, 7):
        monkeypatch.setattr("epigrok.monitor.noise._NUMBERS_AT_A_TIME", number)
        with_noise = NoisyNetwork(model, SETTINGS)
        of_network = torch.stack([with_noise.logits(0.3, draw, inputs) for draw in range(4)])
        drawn.append((of_network, logit_noise(head_inputs(model, inputs), SETTINGS)))
    for of_network, of_head in drawn[1:]:
        torch.testing.assert_close(of_network, drawn[0][0])
        torch.testing.assert_close(of_head, drawn[0][1])
