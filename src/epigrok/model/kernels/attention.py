"""Causal attention with rotary encoding inside a GPU kernel, for short windows.

Queries and keys are turned where they are used and never written back turned. Same result as the
plain path of `model.attention` up to the rounding of the inputs' precision. In the first block of a
training step the projections of a position are a row of a table, chosen by its token: the kernels
look them up and nobody writes them out.

Letters: B sequences, T queries, L keys, N positions of all sequences, D width (of all heads),
W window.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


class Tiling(NamedTuple):
    """How a head is cut into tiles, and how many warps work on one."""

    queries: int
    keys: int
    warps: int


class Asking(NamedTuple):
    """Which positions of a sequence have queries: `first`, `first + step` and so on."""

    first: int
    step: int


EVERYWHERE = Asking(0, 1)
FORWARD = {32: Tiling(32, 32, 1), 64: Tiling(64, 32, 4), 128: Tiling(64, 32, 4)}
"""By head width: the fastest of those tried on an H200 at 95 positions, in bfloat16."""
_FORWARD_SINGLE = Tiling(64, 32, 4)
"""In float32."""


@triton.jit
def halves_of(pointer, source, is_there, stride, HALF: tl.constexpr):
    """Both halves of a head's channels in the rows `source`."""
    place = pointer + source[:, None] * stride + tl.arange(0, HALF)[None, :]
    first = tl.load(place, mask=is_there[:, None], other=0.0)
    return first, tl.load(place + HALF, mask=is_there[:, None], other=0.0)


@triton.jit
def whole_rows(pointer, source, is_there, stride, WIDTH: tl.constexpr):
    """All channels of a head in the rows `source`."""
    place = pointer + source[:, None] * stride + tl.arange(0, WIDTH)[None, :]
    return tl.load(place, mask=is_there[:, None], other=0.0)


@triton.jit
def angles_at(rotary, position, is_there, window, HALF: tl.constexpr):
    place = rotary + position[:, None] * (2 * HALF) + tl.arange(0, HALF)[None, :]
    cosines = tl.load(place, mask=is_there[:, None], other=0.0)
    sines = tl.load(place + window * 2 * HALF, mask=is_there[:, None], other=0.0)
    return cosines.to(tl.float32), sines.to(tl.float32)


@triton.jit
def turned_halves(pointer, source, position, is_there, stride, rotary, window, HALF: tl.constexpr):
    first, second = halves_of(pointer, source, is_there, stride, HALF)
    cosines, sines = angles_at(rotary, position, is_there, window, HALF)
    kind = first.dtype
    return (first * cosines - second * sines).to(kind), (second * cosines + first * sines).to(kind)


@triton.jit
def store_rows(pointer, target, is_there, stride, values, WIDTH: tl.constexpr):
    place = pointer + target[:, None] * stride + tl.arange(0, WIDTH)[None, :]
    tl.store(place, values.to(pointer.dtype.element_ty), mask=is_there[:, None])


@triton.jit
def store_turned_back(
    pointer, target, position, is_there, stride, first, second, rotary, window, HALF: tl.constexpr
):
    """Gradients of what was turned: turning back is turning by the opposite angle."""
    cosines, sines = angles_at(rotary, position, is_there, window, HALF)
    store_rows(pointer, target, is_there, stride, first * cosines + second * sines, HALF)
    store_rows(pointer + HALF, target, is_there, stride, second * cosines - first * sines, HALF)


@triton.jit
def source_of(tokens, position, is_there, IS_TABLE: tl.constexpr):
    """The row that holds the projections of a position: its own, or its token's."""
    if IS_TABLE:
        return tl.load(tokens + position, mask=is_there, other=0)
    return position


@triton.jit
def _attention_forward(
    query, key, value, out, normaliser, tokens, rotary, query_stride, key_stride, out_stride,
    num_queries, num_keys, window, scale,
    HEADS: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, HALF: tl.constexpr, IS_TABLE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, channel = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS * 2 * HALF
    index = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    is_query, position = index < num_queries, FIRST + index * STEP
    source = source_of(tokens, row * num_queries + index, is_query, IS_TABLE)
    q_1, q_2 = turned_halves(
        query + channel, source, position, is_query, query_stride, rotary, window, HALF
    )
    largest = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    read = tl.zeros([QUERIES, 2 * HALF], tl.float32)
    last_position = FIRST + (tl.program_id(0) * QUERIES + QUERIES - 1) * STEP
    for start in range(0, tl.minimum(num_keys, last_position + 1), KEYS):
        key_index = start + tl.arange(0, KEYS)
        is_key = key_index < num_keys
        key_source = source_of(tokens, row * num_keys + key_index, is_key, IS_TABLE)
        k_1, k_2 = turned_halves(
            key + channel, key_source, key_index, is_key, key_stride, rotary, window, HALF
        )
        scores = tl.dot(q_1, tl.trans(k_1), input_precision=PRECISION)
        scores = tl.dot(q_2, tl.trans(k_2), scores, input_precision=PRECISION) * scale
        may_see = (key_index[None, :] <= position[:, None]) & is_key[None, :]
        scores = tl.where(may_see, scores, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_largest[:, None])
        shrink = tl.exp2(largest - new_largest)
        total = total * shrink + tl.sum(weights, axis=1)
        v = whole_rows(value + channel, key_source, is_key, key_stride, 2 * HALF)
        read *= shrink[:, None]
        read = tl.dot(weights.to(v.dtype), v, read, input_precision=PRECISION)
        largest = new_largest
    read /= total[:, None]
    store_rows(out + channel, row * num_queries + index, is_query, out_stride, read, 2 * HALF)
    place = normaliser + tl.program_id(1) * num_queries + index
    tl.store(place, largest + tl.log2(total), mask=is_query)


def attend_forward(inputs, tokens, rotary, num_heads: int, shape: tuple[int, int, int], asking):
    """Output (B, T, D) and normalisers (B · heads, T).

    Args:
        inputs: Queries, keys and values, a row each; of all positions, or of all tokens.
        tokens: Of all positions, where `inputs` are rows of a table; otherwise None.
        rotary: Cosines and sines, for bfloat16 in half precision.
        num_heads: Heads side by side in a row.
        shape: Sequences B, queries T and keys L of each.
        asking: Positions of the queries.
    """
    query, key, _ = inputs
    rows, num_queries, num_keys = shape
    width = query.shape[1]
    head_width = width // num_heads
    out = query.new_empty(rows * num_queries, width)
    normaliser = query.new_empty(rows * num_heads, num_queries, dtype=torch.float32)
    is_half = query.dtype == torch.bfloat16
    tiling = FORWARD[head_width] if is_half else _FORWARD_SINGLE
    is_rough = is_half or torch.get_float32_matmul_precision() != "highest"
    _attention_forward[(triton.cdiv(num_queries, tiling.queries), rows * num_heads)](
        *inputs, out, normaliser, out if tokens is None else tokens, rotary,
        query.stride(0), key.stride(0), width, num_queries, num_keys, rotary.shape[1],
        head_width**-0.5 * LOG2_E, HEADS=num_heads, FIRST=asking.first, STEP=asking.step,
        QUERIES=tiling.queries, KEYS=tiling.keys, HALF=head_width // 2,
        IS_TABLE=tokens is not None, PRECISION="tf32" if is_rough else "ieee",
        num_warps=tiling.warps, num_stages=1,
    )  # fmt: skip
    return out, normaliser
