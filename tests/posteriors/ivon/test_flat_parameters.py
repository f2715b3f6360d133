"""Parameters and gradients as views into one buffer each."""

import pytest
import torch
from torch import nn

from epigrok.errors import UserError
from epigrok.posteriors.ivon.flat_parameters import FlatParameters


def built() -> tuple[nn.Linear, FlatParameters]:
    model = nn.Linear(3, 2)
    return model, FlatParameters(list(model.parameters()))


def test_buffer_and_parameters_are_one() -> None:
    model, flat = built()
    assert torch.equal(flat.live, torch.cat([model.weight.flatten(), model.bias]))
    flat.live += 1.0
    assert torch.equal(model.bias, flat.live[6:])
    with torch.no_grad():
        model.weight.zero_()
    assert (flat.live[:6] == 0).all()


def test_gradients_arrive_in_the_buffer_and_are_cleared_there() -> None:
    model, flat = built()
    model(torch.ones(4, 3)).sum().backward()
    assert torch.equal(flat.gradient, torch.full((8,), 4.0))
    flat.zero_gradients()
    assert model.weight.grad is not None
    assert (model.weight.grad == 0).all()


def test_gradients_that_somebody_detached_are_gathered() -> None:
    model, flat = built()
    model.weight.grad, model.bias.grad = torch.full((2, 3), 7.0), None
    flat.gradient.fill_(5.0)
    flat.gather_gradients()
    assert flat.gradient.tolist() == [7.0] * 6 + [0.0] * 2
    assert model.weight.grad.data_ptr() == flat.gradient.data_ptr()


def test_a_buffer_is_cut_into_the_parameters_shapes() -> None:
    _, flat = built()
    weight, bias = flat.views_of(torch.arange(8.0))
    assert weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert bias.tolist() == [6.0, 7.0]


def test_parameters_that_were_moved_away_are_noticed() -> None:
    model, flat = built()
    flat.require_attached()
    model.bias.data = model.bias.data.clone()
    with pytest.raises(UserError, match="build the optimiser after moving the model"):
        flat.require_attached()


@pytest.mark.parametrize("kinds", [(torch.int64,), (torch.float32, torch.float64)])
def test_parameters_must_be_alike(kinds: tuple[torch.dtype, ...]) -> None:
    with pytest.raises(UserError, match="share a device and a floating-point type"):
        FlatParameters([torch.zeros(2, dtype=kind) for kind in kinds])


def test_narrow_parameters_change_a_wide_copy_only_where_they_were_set() -> None:
    weights = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    flat = FlatParameters([weights])
    assert flat.wide_dtype == torch.float32
    wide = torch.full((3,), 1.001)
    flat.copy_parameters_to(wide)
    assert wide.tolist() == pytest.approx([1.001] * 3)
    with torch.no_grad():
        weights[1] = 2.0
    flat.copy_parameters_to(wide)
    assert wide.tolist() == pytest.approx([1.001, 2.0, 1.001])


def test_a_backward_pass_is_noticed_unless_it_is_expected_or_cleared() -> None:
    model, flat = built()
    backward = lambda: model(torch.ones(4, 3)).sum().backward()  # noqa: E731
    flat.watch.is_expecting = True
    backward()
    assert not flat.has_unexpected_gradients()
    flat.watch.is_expecting = False
    backward()
    assert flat.has_unexpected_gradients()
    flat.zero_gradients()
    assert not flat.has_unexpected_gradients()
    backward()
    model.zero_grad(set_to_none=False)
    assert not flat.has_unexpected_gradients()
    model.zero_grad()
    assert flat.are_gradients_gone


def test_a_frozen_parameter_is_noticed() -> None:
    model, flat = built()
    flat.require_trainable()
    model.bias.requires_grad_(False)
    with pytest.raises(UserError, match="build the optimiser after freezing"):
        flat.require_trainable()
