"""The short search for τ against the long one, and how few calls it makes."""

from dataclasses import replace
from math import log

import pytest
import torch
from torch import nn

from epigrok.monitor import ToleranceSettings, network_answers, tolerance
from epigrok.monitor.searching import searched_tolerance
from epigrok.monitor.tolerance import Answers
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

    def answers_with(settings: ToleranceSettings, which: str = "short") -> Answers:
        answers = network_answers(model, INPUTS, settings)

        def counted(scale: float) -> torch.Tensor:
            num_passes[which] += settings.num_draws
            return answers(scale)

        return counted

    long = tolerance(answers_with(SETTINGS, "long"), 5, SETTINGS)
    short = searched_tolerance(answers_with, 5, SETTINGS)
    assert abs(log(short.value / long.value)) < 0.25 * long.log_standard_error
    assert 0.5 < short.log_standard_error / long.log_standard_error < 2.0
    assert num_passes["short"] < 0.55 * num_passes["long"]


def test_what_cannot_be_read_says_why() -> None:
    model = network(0)

    def reason(**changed: float) -> str | None:
        settings = replace(SETTINGS, **changed)
        return searched_tolerance(
            lambda few: network_answers(model, INPUTS, few), 5, settings
        ).reason

    assert "survive" in str(reason(highest=1e-3))
    assert "already" in str(reason(lowest=10.0))
    assert "rows" in str(reason(fewest_rows=1000))
