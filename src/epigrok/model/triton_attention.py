"""Causal attention with rotary encoding inside GPU kernels, for short windows in bfloat16.

Queries and keys are turned where they are used and never written back turned. Same result as the
plain path of `model.attention` up to the rounding of bfloat16. The backward pass follows the usual
scheme (Dao 2023): probabilities are recomputed from the saved normaliser of each query.

Letters: B rows, T queries, L keys, D width (of all heads), W window.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

MAX_QUERIES = 128
"""Of a sequence: the backward pass has all of them in hand."""
_LOG2_E = 1.4426950408889634


class Tiling(NamedTuple):
    """How a head is cut into tiles, and how many warps work on one."""

    queries: int
    keys: int
    warps: int


_FORWARD_NARROW, _FORWARD_WIDE = Tiling(64, 64, 4), Tiling(64, 32, 4)
"""For heads of up to 64 channels, and for wider ones."""
_BACKWARD = Tiling(MAX_QUERIES, 32, 4)
# The fastest of those tried on an H200 at 95 positions.


@triton.jit
def _halves(pointer, index, is_there, stride, HALF: tl.constexpr):
    """Both halves of a head's channels at the positions `index` of a sequence."""
    place = pointer + index[:, None] * stride + tl.arange(0, HALF)[None, :]
    first = tl.load(place, mask=is_there[:, None], other=0.0)
    return first, tl.load(place + HALF, mask=is_there[:, None], other=0.0)


@triton.jit
def _angles(rotary, position, is_there, window, HALF: tl.constexpr):
    place = rotary + position[:, None] * (2 * HALF) + tl.arange(0, HALF)[None, :]
    cosines = tl.load(place, mask=is_there[:, None], other=0.0)
    sines = tl.load(place + window * 2 * HALF, mask=is_there[:, None], other=0.0)
    return cosines.to(tl.float32), sines.to(tl.float32)


@triton.jit
def _turned(pointer, index, position, is_there, stride, rotary, window, HALF: tl.constexpr):
    first, second = _halves(pointer, index, is_there, stride, HALF)
    cosines, sines = _angles(rotary, position, is_there, window, HALF)
    kind = first.dtype
    return (first * cosines - second * sines).to(kind), (second * cosines + first * sines).to(kind)


@triton.jit
def _store(pointer, index, is_there, stride, first, second, HALF: tl.constexpr):
    place = pointer + index[:, None] * stride + tl.arange(0, HALF)[None, :]
    kind = pointer.dtype.element_ty
    tl.store(place, first.to(kind), mask=is_there[:, None])
    tl.store(place + HALF, second.to(kind), mask=is_there[:, None])


@triton.jit
def _store_turned_back(
    pointer, index, position, is_there, stride, first, second, rotary, window, HALF: tl.constexpr
):
    """Gradients of what was turned: turning back is turning by the opposite angle."""
    cosines, sines = _angles(rotary, position, is_there, window, HALF)
    back_1, back_2 = first * cosines + second * sines, second * cosines - first * sines
    _store(pointer, index, is_there, stride, back_1, back_2, HALF)


@triton.jit
def _forward(
    query, key, value, out, normaliser, rotary, num_queries, num_keys, first_asking, asking_step,
    window, query_stride, key_stride, out_stride, scale,
    HEADS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS
    query += row * num_queries * query_stride + head * 2 * HALF
    key += row * num_keys * key_stride + head * 2 * HALF
    value += row * num_keys * key_stride + head * 2 * HALF
    out += row * num_queries * out_stride + head * 2 * HALF

    index = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    is_query, position = index < num_queries, first_asking + index * asking_step
    q_1, q_2 = _turned(query, index, position, is_query, query_stride, rotary, window, HALF)
    largest = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    sum_1 = tl.zeros([QUERIES, HALF], tl.float32)
    sum_2 = tl.zeros([QUERIES, HALF], tl.float32)
    last_position = first_asking + (tl.program_id(0) * QUERIES + QUERIES - 1) * asking_step
    for start in range(0, tl.minimum(num_keys, last_position + 1), KEYS):
        key_index = start + tl.arange(0, KEYS)
        is_key = key_index < num_keys
        k_1, k_2 = _turned(key, key_index, key_index, is_key, key_stride, rotary, window, HALF)
        scores = (tl.dot(q_1, tl.trans(k_1)) + tl.dot(q_2, tl.trans(k_2))) * scale
        may_see = (key_index[None, :] <= position[:, None]) & is_key[None, :]
        scores = tl.where(may_see, scores, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_largest[:, None])
        shrink = tl.exp2(largest - new_largest)
        total = total * shrink + tl.sum(weights, axis=1)
        v_1, v_2 = _halves(value, key_index, is_key, key_stride, HALF)
        weights = weights.to(v_1.dtype)
        sum_1 = sum_1 * shrink[:, None] + tl.dot(weights, v_1)
        sum_2 = sum_2 * shrink[:, None] + tl.dot(weights, v_2)
        largest = new_largest
    sum_1, sum_2 = sum_1 / total[:, None], sum_2 / total[:, None]
    _store(out, index, is_query, out_stride, sum_1, sum_2, HALF)
    place = normaliser + tl.program_id(1) * num_queries + index
    tl.store(place, largest + tl.log2(total), mask=is_query)


@triton.jit
def _row_products(x, y):
    return tl.sum(x.to(tl.float32) * y.to(tl.float32), axis=1)


@triton.jit
def _backward(
    query, key, value, out, normaliser, grad_out, grad_query, grad_key, grad_value, rotary,
    num_queries, num_keys, first_asking, asking_step, window,
    query_stride, key_stride, out_stride, scale, plain_scale,
    HEADS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    to_queries = row * num_queries * query_stride + head * 2 * HALF
    to_keys = row * num_keys * key_stride + head * 2 * HALF
    to_out = row * num_queries * out_stride + head * 2 * HALF
    query, grad_query = query + to_queries, grad_query + to_queries
    key, grad_key = key + to_keys, grad_key + to_keys
    value, grad_value = value + to_keys, grad_value + to_keys
    out, grad_out = out + to_out, grad_out + to_out

    # All queries of a head at once: each tile of keys then has its gradients after a single visit.
    index = tl.arange(0, QUERIES)
    is_query, position = index < num_queries, first_asking + index * asking_step
    q_1, q_2 = _turned(query, index, position, is_query, query_stride, rotary, window, HALF)
    g_1, g_2 = _halves(grad_out, index, is_query, out_stride, HALF)
    o_1, o_2 = _halves(out, index, is_query, out_stride, HALF)
    inner = _row_products(g_1, o_1) + _row_products(g_2, o_2)
    place = normaliser + tl.program_id(0) * num_queries + index
    norm = tl.load(place, mask=is_query, other=0.0)
    of_query_1 = tl.zeros([QUERIES, HALF], tl.float32)
    of_query_2 = tl.zeros([QUERIES, HALF], tl.float32)
    for start in range(0, num_keys, KEYS):
        key_index = start + tl.arange(0, KEYS)
        is_key = key_index < num_keys
        k_1, k_2 = _turned(key, key_index, key_index, is_key, key_stride, rotary, window, HALF)
        v_1, v_2 = _halves(value, key_index, is_key, key_stride, HALF)
        scores = (tl.dot(q_1, tl.trans(k_1)) + tl.dot(q_2, tl.trans(k_2))) * scale
        may_see = (key_index[None, :] <= position[:, None]) & is_query[:, None]
        probs = tl.where(may_see, tl.exp2(scores - norm[:, None]), 0.0)
        grad_probs = tl.dot(g_1, tl.trans(v_1)) + tl.dot(g_2, tl.trans(v_2))
        grad_scores = (probs * (grad_probs - inner[:, None]) * plain_scale).to(k_1.dtype)
        of_query_1 += tl.dot(grad_scores, k_1)
        of_query_2 += tl.dot(grad_scores, k_2)
        probs, grad_scores = tl.trans(probs.to(k_1.dtype)), tl.trans(grad_scores)
        of_value_1, of_value_2 = tl.dot(probs, g_1), tl.dot(probs, g_2)
        _store(grad_value, key_index, is_key, key_stride, of_value_1, of_value_2, HALF)
        _store_turned_back(
            grad_key, key_index, key_index, is_key, key_stride,
            tl.dot(grad_scores, q_1), tl.dot(grad_scores, q_2), rotary, window, HALF,
        )  # fmt: skip
    _store_turned_back(
        grad_query, index, position, is_query, query_stride, of_query_1, of_query_2, rotary, window,
        HALF,
    )  # fmt: skip


def attend_forward(inputs, rotary, num_heads: int, asking: tuple[int, int]):
    """Output (B, T, D) and normalisers (B · heads, T) for queries, keys and values."""
    query, key, _ = inputs
    rows, num_queries, width = query.shape
    out = query.new_empty(rows, num_queries, width)
    normaliser = query.new_empty(rows * num_heads, num_queries, dtype=torch.float32)
    scale = (width // num_heads) ** -0.5 * _LOG2_E
    tiling = _FORWARD_WIDE if width // num_heads > 64 else _FORWARD_NARROW
    tile = _tile(num_queries, tiling)
    _forward[(triton.cdiv(num_queries, tile), rows * num_heads)](
        *inputs, out, normaliser, rotary, num_queries, key.shape[1], *asking, rotary.shape[1],
        query.stride(1), key.stride(1), out.stride(1), scale,
        HEADS=num_heads, QUERIES=tile, KEYS=tiling.keys, HALF=width // num_heads // 2,
        num_warps=tiling.warps, num_stages=1,
    )  # fmt: skip
    return out, normaliser


def attend_backward(inputs, saved, gradients, rotary, num_heads: int, asking: tuple[int, int]):
    """Fill `gradients` of queries, keys and values; `saved` is out, normaliser, its gradient."""
    query, key, _ = inputs
    rows, num_queries, width = query.shape
    scale = (width // num_heads) ** -0.5
    _backward[(rows * num_heads,)](
        *inputs, *saved, *gradients, rotary, num_queries, key.shape[1], *asking, rotary.shape[1],
        query.stride(1), key.stride(1), saved[0].stride(1), scale * _LOG2_E, scale,
        HEADS=num_heads, QUERIES=_tile(num_queries, _BACKWARD), KEYS=_BACKWARD.keys,
        HALF=width // num_heads // 2, num_warps=_BACKWARD.warps, num_stages=1,
    )  # fmt: skip


def _tile(num_queries: int, tiling: Tiling) -> int:
    """Queries of a tile: a power of two, as few as matrix units work on where there are few."""
    return min(tiling.queries, max(16, triton.next_power_of_2(num_queries)))
