"""Every GPU kernel against float64, on inputs that are exact in its own precision."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from epigrok.model.attention import asking_attention, rotary_tables, self_attention

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
BFLOAT16 = 0.01
"""Relative error of sums of products of numbers with 8 bits."""


def error(value: Tensor, exact: Tensor) -> float:
    return ((value.double() - exact.double()).norm() / exact.double().norm()).item()


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, device="cuda").bfloat16()


@pytest.mark.parametrize("head_width", [32, 64, 128])
@pytest.mark.parametrize("length", [5, 17, 95, 128])
def test_attention_everywhere(length: int, head_width: int) -> None:
    from epigrok.model.kernels.attention import EVERYWHERE, attend_forward
    from epigrok.model.kernels.attention_backward import attend_backward

    torch.manual_seed(0)
    rows, heads = 3, 2
    width, shape = heads * head_width, (rows, length, length)
    rotary = rotary_tables(128, head_width).cuda()
    table, tokens = normal(11, 3 * width), torch.randint(11, (rows * length,), device="cuda")
    projected, grad = table[tokens].contiguous(), normal(rows * length, width)
    exact = projected.double().requires_grad_()
    expected = self_attention(exact.view(rows, length, -1), rotary.double(), heads).flatten(0, 1)
    expected.backward(grad.double())
    for source, chosen in ((projected, None), (table, tokens.int())):
        inputs = source.chunk(3, dim=1)
        out, norm = attend_forward(inputs, chosen, rotary.half(), heads, shape, EVERYWHERE)
        gradient = torch.full_like(projected, torch.nan)
        parts = gradient.chunk(3, dim=1)
        saved = (out, norm, grad)
        attend_backward(inputs, chosen, saved, parts, rotary.half(), heads, shape, EVERYWHERE)
        assert error(out, expected) < BFLOAT16
        assert error(gradient, exact.grad) < BFLOAT16


@pytest.mark.parametrize("head_width", [32, 64, 128])
@pytest.mark.parametrize("length", [5, 17, 95, 128])
def test_attention_where_something_is_asked(length: int, head_width: int) -> None:
    from epigrok.model.kernels.attention import Asking, attend_forward
    from epigrok.model.kernels.attention_backward import attend_backward

    torch.manual_seed(0)
    rows, heads, asking = 3, 2, Asking(1, 3)
    number = len(range(length)[1::3])
    width, shape = heads * head_width, (rows, number, length)
    rotary = rotary_tables(128, head_width).cuda()
    query, key_value = normal(rows * number, width), normal(rows * length, 2 * width)
    grad = normal(rows * number, width)
    exact = [part.double().requires_grad_() for part in (query, key_value)]
    expected = asking_attention(
        *(part.view(rows, -1, part.shape[1]) for part in exact),
        rotary.double(),
        heads,
        slice(1, None, 3),
    ).flatten(0, 1)
    expected.backward(grad.double())
    inputs = (query, *key_value.chunk(2, dim=1))
    out, norm = attend_forward(inputs, None, rotary.half(), heads, shape, asking)
    gradients = [torch.full_like(part, torch.nan) for part in (query, key_value)]
    parts = (gradients[0], *gradients[1].chunk(2, dim=1))
    attend_backward(inputs, None, (out, norm, grad), parts, rotary.half(), heads, shape, asking)
    assert error(out, expected) < BFLOAT16
    for gradient, part in zip(gradients, exact):
        assert error(gradient, part.grad) < BFLOAT16


@pytest.mark.parametrize(("width", "inner_width"), [(64, 128), (128, 512), (256, 384)])
def test_feedforward(width: int, inner_width: int) -> None:
    from epigrok.model.kernels.feedforward import feedforward_backward, feedforward_forward

    torch.manual_seed(0)
    x, grad = normal(300, width), normal(300, width)
    into, out_of = normal(inner_width, width), normal(width, inner_width)
    inner, out = feedforward_forward(x, into, out_of)
    exact_inner = functional.relu(x.double() @ into.double().t())
    assert error(inner, exact_inner) < BFLOAT16
    assert error(out, exact_inner @ out_of.double().t()) < BFLOAT16
    grad_inner, grad_x = feedforward_backward(grad, into, out_of, inner)
    exact = (grad.double() @ out_of.double()).where(inner > 0, 0.0)
    assert error(grad_inner, exact) < BFLOAT16
    assert error(grad_x, exact @ into.double()) < BFLOAT16


@pytest.mark.parametrize("width", [64, 512])
def test_norm_with_its_update_at_some_or_all_positions(width: int) -> None:
    from epigrok.model.kernels.norm import (
        ALL,
        NUM_SHARES,
        Picked,
        add_and_norm,
        gradient_of_stream,
    )

    torch.manual_seed(0)
    rows, length = 7, 23
    gain, bias = torch.randn(2, width, device="cuda")
    stream = torch.randn(rows * length, width, device="cuda")
    for picked, number in ((ALL, length), (Picked(length, 8, 1, 3), 8)):
        update, grad_normed = normal(rows * number, width), normal(rows * number, width)
        exact = [part.double().requires_grad_() for part in (stream, update, gain, bias)]
        chosen = exact[0].view(rows, length, width)
        chosen = chosen if picked == ALL else chosen[:, 1::3]
        after = chosen.reshape(-1, width) + exact[1]
        normed = functional.layer_norm(after, (width,), exact[2], exact[3])
        kept = add_and_norm(stream, update, gain, bias, picked=picked)
        assert error(kept.stream, after) < 1e-6
        assert error(kept.normed, normed) < BFLOAT16
        grad_stream = normal(rows * number, width)
        torch.autograd.backward((normed, after), (grad_normed.double(), grad_stream.double()))
        shares = torch.full((NUM_SHARES, 2, width), torch.nan, device="cuda")
        gradient = gradient_of_stream(kept, gain, shares, grad_normed, grad_stream)
        assert error(gradient, exact[1].grad) < BFLOAT16
        for total, part in zip(shares.sum(dim=0), exact[2:]):
            assert error(total, part.grad) < 1e-4


def test_gradients_that_reach_only_some_positions_are_added_there() -> None:
    from epigrok.model.kernels.norm import NUM_SHARES, Picked, add_and_norm, gradient_of_stream

    torch.manual_seed(0)
    rows, length, width, picked = 5, 14, 128, Picked(14, 5, 1, 3)
    gain, bias = torch.randn(2, width, device="cuda")
    stream, update = torch.randn(rows * length, width, device="cuda"), normal(rows * length, width)
    kept = add_and_norm(stream, update, gain, bias)
    everywhere, there, past = normal(70, width), normal(25, width), normal(25, width)
    shares = torch.empty(NUM_SHARES, 2, width, device="cuda")
    gradient = gradient_of_stream(kept, gain, shares, everywhere, past, there, picked)
    exact = kept.stream.double().requires_grad_()
    normed = functional.layer_norm(exact, (width,), gain.double(), bias.double())
    asked = exact.view(rows, length, width)[:, 1::3].reshape(-1, width)
    asked_normed = normed.view(rows, length, width)[:, 1::3].reshape(-1, width)
    outputs, gradients = (normed, asked_normed, asked), (everywhere, there, past)
    torch.autograd.backward(outputs, tuple(part.double() for part in gradients))
    assert error(gradient, exact.grad) < BFLOAT16


def test_sums_by_token_are_those_of_index_add() -> None:
    from epigrok.model.kernels.token_sums import sums_by_token

    torch.manual_seed(0)
    values, tokens = normal(5001, 192), torch.randint(29, (5001,), device="cuda")
    exact = torch.zeros(32, 192, device="cuda", dtype=torch.float64)
    exact.index_add_(0, tokens, values.double())
    assert error(sums_by_token(values, tokens.int(), 32), exact) < 1e-5


def test_the_loss_and_its_gradient_are_those_of_cross_entropy() -> None:
    from epigrok.model.kernels.answer_loss import mean_loss_and_gradient

    torch.manual_seed(0)
    logits, answers = 5 * torch.randn(1001, 32, device="cuda"), torch.randint(29, (1001,)).cuda()
    exact = logits.double().requires_grad_()
    expected = functional.cross_entropy(exact[:, :29], answers)
    expected.backward()
    loss, gradient = mean_loss_and_gradient(logits, answers, 29)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert error(gradient, exact.grad) < BFLOAT16
    assert not gradient[:, 29:].any()


def test_a_lookup_has_the_same_gradient_as_that_of_torch() -> None:
    from epigrok.model.lookup import look_up

    torch.manual_seed(0)
    table = torch.randn(29, 64, device="cuda", requires_grad=True)
    tokens, grad = torch.randint(29, (40, 95), device="cuda"), torch.randn(40, 95, 64).cuda()
    (ours,) = torch.autograd.grad(look_up(table, tokens), table, grad)
    exact = table.detach().double().requires_grad_()
    (theirs,) = torch.autograd.grad(exact[tokens], exact, grad.double())
    torch.testing.assert_close(ours, theirs.float())
