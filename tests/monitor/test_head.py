"""The head is found by watching one pass, and the model is left as it was."""

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


def test_an_exception_leaves_mode_and_hooks_as_they_were() -> None:
    model = network().train()

    def fail(model: nn.Module, inputs: Tensor) -> Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        head_inputs(model, torch.randn(2, 4), forward=fail)
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_an_output_that_is_not_the_last_layers_is_refused() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    with pytest.raises(ValueError, match="not that of its last linear layer"):
        head_inputs(model, torch.randn(2, 4))
    with pytest.raises(ValueError, match="no linear layer"):
        head_inputs(nn.Identity(), torch.randn(2, 4))
