"""The short search for τ against the long one, and how few calls it makes."""

from dataclasses import replace
from math import log

import pytest
import torch
from torch import nn

from epigrok.monitor import ToleranceSettings, tolerance
from epigrok.monitor.noise import NoisyNetwork, answers_of
from epigrok.monitor.searching import searched_tolerance
from epigrok.random_streams import normal, stream_key

SETTINGS = ToleranceSettings()
INPUTS = normal(stream_key(0, "inputs"), (256, 6))


def network(seed: int) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 5)).eval()


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_what_the_long_search_finds_with_a_third_of_the_passes(seed: int) -> None:
    model, num_passes = network(seed), {"long": 0, "short": 0}
    noisy = NoisyNetwork(model, SETTINGS)

    def answers_in(scale: float, draw: int, which: str = "short") -> torch.Tensor:
        num_passes[which] += 1
        return answers_of(noisy.logits(scale, draw, INPUTS))

    def all_answers(scale: float) -> torch.Tensor:
        return torch.stack([answers_in(scale, draw, "long") for draw in range(SETTINGS.num_draws)])

    long = tolerance(all_answers, 5, SETTINGS)
    short = searched_tolerance(answers_in, 5, SETTINGS)
    assert abs(log(short.value / long.value)) < 0.25 * long.log_standard_error
    assert 0.5 < short.log_standard_error / long.log_standard_error < 2.0
    assert num_passes["short"] <= 1 + 5 * 2 + 3 * 8 < 0.3 * num_passes["long"]


def test_what_cannot_be_read_says_why() -> None:
    model = network(0)

    def reason(**changed: float) -> str | None:
        settings = replace(SETTINGS, **changed)
        noisy = NoisyNetwork(model, settings)
        return searched_tolerance(
            lambda scale, draw: answers_of(noisy.logits(scale, draw, INPUTS)), 5, settings
        ).reason

    assert "survive" in str(reason(highest=1e-3))
    assert "already" in str(reason(lowest=10.0))
    assert "rows" in str(reason(fewest_rows=1000))
