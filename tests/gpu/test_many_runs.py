"""Several runs in one process: none knows what ran before it."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from epigrok.config import RunConfig, preset
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def weights_after(config: RunConfig, number: int = 12) -> list[Tensor]:
    family = build_family(config, sample_world(config.task, 0), "cuda")
    state = initial_state(config, "cuda")
    steps = training_steps(state, family, config, compiled=True)
    for _ in range(number):
        next(steps)
    return [weights.detach().clone() for weights in state.model.parameters()]


@pytest.mark.parametrize("name", ["icl-small", "icl-medium-ivon", "classic-ivon"])
def test_a_run_is_the_same_after_others(name: str) -> None:
    config = replace(preset(name), batch_size=256)
    alone = weights_after(config)
    # Another size, another seed: a compiler would now make kernels for any size.
    weights_after(preset("icl-tiny-ivon"))
    weights_after(replace(config, run_seed=1))
    for one, other in zip(alone, weights_after(config), strict=True):
        assert one.equal(other)
