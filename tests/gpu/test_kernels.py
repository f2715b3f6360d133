"""Every GPU kernel against float64, on inputs that are exact in its own precision.

Without a GPU, Triton's interpreter runs the same kernels in NumPy: `make test-kernels`.
"""

import pytest
import torch
from interpreted_kernels import DEVICE, MARKS
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import cross_entropy

from epigrok.bench.plain_training import plain_logits
from epigrok.config import preset
from epigrok.model import build_model
from epigrok.model.attention import asking_attention, rotary_tables, self_attention
from epigrok.model.fused_training import fits_kernels, loss_and_gradients

pytestmark = MARKS
BFLOAT16 = 0.01
"""Relative error of sums of products of numbers with 8 bits."""
# The interpreter takes its time; 45 positions need two tiles of keys.
LENGTHS = (5, 17, 95, 128) if DEVICE == "cuda" else (5, 45)
PRESETS = ("icl-small", "icl-medium", "icl-paper") if DEVICE == "cuda" else ("icl-small",)
NUM_SEQUENCES = 32 if DEVICE == "cuda" else 2


def error(value: Tensor, exact: Tensor) -> float:
    return ((value.double() - exact.double()).norm() / exact.double().norm()).item()


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, device=DEVICE).bfloat16()


@pytest.mark.parametrize("head_width", [32, 64, 128])
@pytest.mark.parametrize("length", LENGTHS)
def test_attention_everywhere(length: int, head_width: int) -> None:
    from epigrok.model.kernels.attention import EVERYWHERE, attend_forward
    from epigrok.model.kernels.attention_backward import attend_backward

    torch.manual_seed(0)
    rows, heads = 3, 2
    width, shape = heads * head_width, (rows, length, length)
    rotary = rotary_tables(128, head_width).to(DEVICE)
    table, tokens = normal(11, 3 * width), torch.randint(11, (rows * length,), device=DEVICE)
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


@pytest.mark.parametrize("precision", ["high", "highest"])
@pytest.mark.parametrize(("length", "head_width"), [(3, 32), (33, 64), (95, 128)])
def test_attention_in_single_precision(
    length: int, head_width: int, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from epigrok.model.kernels.attention import EVERYWHERE, attend_forward

    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)
    torch.manual_seed(0)
    rows, heads = 3, 2
    rotary = rotary_tables(128, head_width).to(DEVICE)
    projected = torch.randn(rows * length, 3 * heads * head_width, device=DEVICE)
    shape, inputs = (rows, length, length), projected.chunk(3, dim=1)
    out, _ = attend_forward(inputs, None, rotary, heads, shape, EVERYWHERE)
    exact = self_attention(projected.double().view(rows, length, -1), rotary.double(), heads)
    assert error(out, exact.flatten(0, 1)) < (2e-3 if precision == "high" else 1e-6)


@pytest.mark.parametrize("head_width", [32, 64, 128])
@pytest.mark.parametrize("length", LENGTHS)
def test_attention_where_something_is_asked(length: int, head_width: int) -> None:
    from epigrok.model.kernels.attention import Asking, attend_forward
    from epigrok.model.kernels.attention_backward import attend_backward

    torch.manual_seed(0)
    rows, heads, asking = 3, 2, Asking(1, 3)
    number = len(range(length)[1::3])
    width, shape = heads * head_width, (rows, number, length)
    rotary = rotary_tables(128, head_width).to(DEVICE)
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
    gain, bias = torch.randn(2, width, device=DEVICE)
    stream = torch.randn(rows * length, width, device=DEVICE)
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
        shares = torch.full((NUM_SHARES, 2, width), torch.nan, device=DEVICE)
        gradient = gradient_of_stream(kept, gain, shares, grad_normed, grad_stream)
        assert error(gradient, exact[1].grad) < BFLOAT16
        for total, part in zip(shares.sum(dim=0), exact[2:]):
            assert error(total, part.grad) < 1e-4


def test_gradients_that_reach_only_some_positions_are_added_there() -> None:
    from epigrok.model.kernels.norm import NUM_SHARES, Picked, add_and_norm, gradient_of_stream

    torch.manual_seed(0)
    rows, length, width, picked = 5, 14, 128, Picked(14, 5, 1, 3)
    gain, bias = torch.randn(2, width, device=DEVICE)
    stream, update = torch.randn(rows * length, width, device=DEVICE), normal(rows * length, width)
    kept = add_and_norm(stream, update, gain, bias)
    everywhere, there, past = normal(70, width), normal(25, width), normal(25, width)
    shares = torch.empty(NUM_SHARES, 2, width, device=DEVICE)
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
    values, tokens = normal(5001, 192), torch.randint(29, (5001,), device=DEVICE)
    exact = torch.zeros(32, 192, device=DEVICE, dtype=torch.float64)
    exact.index_add_(0, tokens, values.double())
    assert error(sums_by_token(values, tokens.int(), 32), exact) < 1e-5


def test_the_loss_and_its_gradient_are_those_of_cross_entropy() -> None:
    from epigrok.model.kernels.answer_loss import mean_loss_and_gradient

    torch.manual_seed(0)
    logits = 5 * torch.randn(1001, 32, device=DEVICE)
    answers = torch.randint(29, (1001,), device=DEVICE)
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
    table = torch.randn(29, 64, device=DEVICE, requires_grad=True)
    tokens, grad = torch.randint(29, (40, 95), device=DEVICE), torch.randn(40, 95, 64).to(DEVICE)
    (ours,) = torch.autograd.grad(look_up(table, tokens), table, grad)
    exact = table.detach().double().requires_grad_()
    (theirs,) = torch.autograd.grad(exact[tokens], exact, grad.double())
    torch.testing.assert_close(ours, theirs.float())


@pytest.mark.parametrize("name", PRESETS)
def test_the_gradients_of_a_training_step_agree_with_float64(name: str) -> None:
    torch.manual_seed(0)
    config = preset(name)
    model = build_model(config, DEVICE)
    assert fits_kernels(model, 32) or DEVICE == "cpu"
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                # Away from the start, where all gains are one and all biases zero.
                parameter += 0.1 * torch.randn_like(parameter)
    tokens = torch.randint(0, config.task.vocabulary_size, (NUM_SEQUENCES, 96), device=DEVICE)
    answers = tokens[:, 2::3].contiguous()
    loss = loss_and_gradients(model, tokens, answers)
    fused = [parameter.grad.double() for parameter in model.parameters()]
    model.zero_grad()
    exact = cross_entropy(plain_logits(model.double(), tokens).flatten(0, 1), answers.flatten())
    exact.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert loss.item() == pytest.approx(exact.item(), rel=1e-2)
    for one, other in zip(fused, gradients, strict=True):
        assert (one - other).norm() / other.norm() < 0.15
    error = sum((one - other).square().sum() for one, other in zip(fused, gradients))
    assert (error / sum(g.square().sum() for g in gradients)).sqrt() < 0.05
