"""A mistake shows when the monitor is made, before training starts."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from taught_network import HELD_OUT_X, SEEN_X, untaught_network
from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.monitor import GrokMonitor
from epigrok.monitor.trying import require_model

WATCHED = {"held out": HELD_OUT_X}


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (nn.Identity(), "the model has no parameters"),
        (
            nn.Sequential(nn.LazyLinear(3)),
            r"first call will make its parameter '0\.weight'.*call the model on a batch before",
        ),
        (len, "model must be a torch.nn.Module, got builtin_function"),
    ],
    ids=["without parameters", "lazy", "no module"],
)
def test_what_no_noise_can_be_put_on_is_refused(model: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        require_model(model)


def test_a_lazy_model_that_was_called_is_watched() -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    model(SEEN_X[:1])
    assert require_model(model) is model
    GrokMonitor(model, SEEN_X, WATCHED).update(1)


def out_of_memory(model: nn.Module, x: Tensor) -> Tensor:
    raise torch.OutOfMemoryError


@pytest.mark.parametrize(
    ("forward", "sentence"),
    [
        (
            lambda model, x: model(x).mul_(2.0),
            r"changes in place.*MonitorSettings\(head=…\)\); or put the noise on the whole network",
        ),
        (lambda model, x: model(x[:, :3]), r"cannot be called on seen \(torch.float32 of shape"),
        (out_of_memory, "256 inputs of seen at once do not fit into memory"),
    ],
    ids=["changed in place", "wrong inputs", "too many inputs"],
)
def test_why_a_first_call_fails_is_said_in_one_sentence(
    forward: Callable[[Any, Any], Tensor], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        GrokMonitor(untaught_network(), SEEN_X, WATCHED, forward=forward)
    assert "\n" not in str(caught.value)
