"""LayerNorm in one kernel with what comes before it: adding an update to the residual stream.

One kernel forward and one backward, each reading and writing the stream once. The gradients of gain
and bias are sums over all positions: each program sums its own share in order, and the shares are
added in order.

Letters: N positions, D width, M positions that ask.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from epigrok.model.transformer import NORM_EPS

_ELEMENTS, _WARPS = 2048, 4
"""Of a tile, and how many warps work on it."""
NUM_SHARES = 528
"""Programs of the backward pass, four for each multiprocessor of an H200."""


class Picked(NamedTuple):
    """The positions that ask, in sequences of `length`: `number` of them, every `step`-th."""

    length: int
    number: int
    first: int
    step: int


ALL = Picked(1, 1, 0, 1)


class Normed(NamedTuple):
    """What a norm gives: the stream with its update, the normed stream, and its statistics."""

    stream: Tensor
    normed: Tensor
    mean: Tensor
    scale: Tensor


@triton.jit
def _norm_forward(
    stream, update, tokens, gain, bias, out_stream, normed, mean, scale, num_rows, eps,
    D: tl.constexpr, ROWS: tl.constexpr, HAS_UPDATE: tl.constexpr, IS_TABLE: tl.constexpr,
    LENGTH: tl.constexpr, NUMBER: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)[None, :]
    is_there = row < num_rows
    if IS_TABLE:
        source = tl.load(tokens + row, mask=is_there, other=0)
    else:
        source = row // NUMBER * LENGTH + FIRST + row % NUMBER * STEP
    x = tl.load(stream + source[:, None] * D + column, mask=is_there[:, None], other=0.0)
    x = x.to(tl.float32)
    place = row[:, None] * D + column
    if HAS_UPDATE:
        x += tl.load(update + place, mask=is_there[:, None], other=0.0).to(tl.float32)
        kept = x.to(out_stream.dtype.element_ty)
        tl.store(out_stream + place, kept, mask=is_there[:, None])
        x = kept.to(tl.float32)
    centre = tl.sum(x, axis=1) / D
    x -= centre[:, None]
    shrink = tl.rsqrt(tl.sum(x * x, axis=1) / D + eps)
    out = x * shrink[:, None] * tl.load(gain + column) + tl.load(bias + column)
    tl.store(normed + place, out.to(normed.dtype.element_ty), mask=is_there[:, None])
    tl.store(mean + row, centre, mask=is_there)
    tl.store(scale + row, shrink, mask=is_there)


@triton.jit
def _norm_backward(
    grad_normed, grad_picked, grad_stream, stream, mean, scale, gain, out, shares,
    num_rows, num_tiles,
    D: tl.constexpr, ROWS: tl.constexpr, HAS_STREAM: tl.constexpr, IS_PICKED: tl.constexpr,
    LENGTH: tl.constexpr, NUMBER: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, D)[None, :]
    weight = tl.load(gain + column)
    of_gain = tl.zeros([ROWS, D], tl.float32)
    of_bias = tl.zeros([ROWS, D], tl.float32)
    for tile in range(tl.program_id(0), num_tiles, tl.num_programs(0)):
        row = tile * ROWS + tl.arange(0, ROWS)
        is_there = row < num_rows
        place, mask = row[:, None] * D + column, is_there[:, None]
        grad = tl.load(grad_normed + place, mask=mask, other=0.0).to(tl.float32)
        centre = tl.load(mean + row, mask=is_there, other=0.0)
        shrink = tl.load(scale + row, mask=is_there, other=0.0)
        x = tl.load(stream + place, mask=mask, other=0.0).to(tl.float32)
        x = (x - centre[:, None]) * shrink[:, None]
        if IS_PICKED:
            after_first = row % LENGTH - FIRST
            is_asking = is_there & (after_first >= 0) & (after_first % STEP == 0)
            picked = row // LENGTH * NUMBER + after_first // STEP
            there = picked[:, None] * D + column
            grad += tl.load(grad_picked + there, mask=is_asking[:, None], other=0.0).to(tl.float32)
            passed = tl.load(grad_stream + there, mask=is_asking[:, None], other=0.0)
        elif HAS_STREAM:
            passed = tl.load(grad_stream + place, mask=mask, other=0.0)
        of_gain += grad * x
        of_bias += grad
        grad *= weight
        along = tl.sum(grad * x, axis=1) / D
        grad = (grad - (tl.sum(grad, axis=1) / D)[:, None] - x * along[:, None]) * shrink[:, None]
        if HAS_STREAM:
            grad += passed.to(tl.float32)
        tl.store(out + place, grad.to(out.dtype.element_ty), mask=mask)
    place = shares + tl.program_id(0) * 2 * D + tl.arange(0, D)
    tl.store(place, tl.sum(of_gain, axis=0))
    tl.store(place + D, tl.sum(of_bias, axis=0))


def add_and_norm(
    stream: Tensor,
    update: Tensor | None,
    gain: Tensor,
    bias: Tensor,
    tokens: Tensor | None = None,
    picked: Picked = ALL,
) -> Normed:
    """Normalise the rows of the stream with their update, if there is one.

    Args:
        stream: (N, D); or a table from which `tokens` choose the rows of the stream.
        update: (N, D), or (M, D) for the rows of the stream that are picked.
        gain: (D,).
        bias: (D,).
        tokens: Of all positions, where `stream` is a table.
        picked: Rows of the stream that are wanted, by default all.
    """
    num_rows, width = stream.shape if update is None else update.shape
    rows = max(1, _ELEMENTS // width)
    normed = stream.new_empty(num_rows, width, dtype=torch.bfloat16)
    mean, scale = stream.new_empty(2, num_rows, dtype=torch.float32)
    out = stream if update is None else stream.new_empty(num_rows, width, dtype=torch.float32)
    _norm_forward[(triton.cdiv(num_rows, rows),)](
        stream, normed if update is None else update, mean if tokens is None else tokens,
        gain, bias, out, normed, mean, scale, num_rows, NORM_EPS,
        D=width, ROWS=rows, HAS_UPDATE=update is not None, IS_TABLE=tokens is not None,
        LENGTH=picked.length, NUMBER=picked.number, FIRST=picked.first, STEP=picked.step,
        num_warps=_WARPS,
    )  # fmt: skip
    return Normed(out, normed, mean, scale)


def gradient_of_stream(
    kept: Normed,
    gain: Tensor,
    shares: Tensor,
    grad_normed: Tensor,
    grad_stream: Tensor | None = None,
    grad_picked: Tensor | None = None,
    picked: Picked = ALL,
) -> Tensor:
    """Gradient of what came in, in bfloat16.

    Args:
        kept: What the forward pass gave.
        gain: (D,).
        shares: (NUM_SHARES, 2, D), to be filled: their sum is the gradient of gain and bias.
        grad_normed: Of what was normed.
        grad_stream: What reaches the stream past the norm, if anything.
        grad_picked: More of what was normed, at the positions picked; `grad_stream` is then at
            those positions, too.
        picked: Which ones.
    """
    num_rows, width = kept.stream.shape
    rows = max(1, _ELEMENTS // width)
    out = torch.empty_like(grad_normed)
    _norm_backward[(NUM_SHARES,)](
        grad_normed, out if grad_picked is None else grad_picked,
        out if grad_stream is None else grad_stream, kept.stream, kept.mean, kept.scale, gain, out,
        shares, num_rows, triton.cdiv(num_rows, rows),
        D=width, ROWS=rows, HAS_STREAM=grad_stream is not None, IS_PICKED=grad_picked is not None,
        LENGTH=picked.length, NUMBER=picked.number, FIRST=picked.first, STEP=picked.step,
        num_warps=_WARPS,
    )  # fmt: skip
    return out
