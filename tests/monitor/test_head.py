"""The monitor reads heads through `posteriors.head`, and leaves the model as it was."""

import pytest
import torch
from torch import Tensor, nn

from epigrok.monitor import head_inputs


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def test_features_and_head_give_the_networks_own_logits() -> None:
    model, inputs = network().train(), torch.randn(10, 4)
    found = head_inputs(model, inputs)
    assert model.training
    torch.testing.assert_close(found.logits(), model.eval()(inputs))
    assert found.features_ND.shape == (10, 8)


def test_further_training_does_not_change_what_was_found() -> None:
    model, inputs = network(), torch.randn(10, 4)
    found = head_inputs(model, inputs)
    before = found.logits().clone()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(found.logits(), before)


def test_an_exception_leaves_the_mode_as_it_was() -> None:
    model = network().train()

    def fail(model: nn.Module, inputs: Tensor) -> Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        head_inputs(model, torch.randn(2, 4), forward=fail)
    assert model.training
