"""Gradients of attention with rotary encoding, in bfloat16 kernels.

The usual scheme (Dao 2023): probabilities are recomputed from the saved normaliser of each query.
Every gradient is made by one program, so that nothing is added up across programs.

Letters: B sequences, T queries, L keys, N positions of all sequences, D width (of all heads),
W window.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from epigrok.model.kernels.attention import (
    LOG2_E,
    source_of,
    store_rows,
    store_turned_back,
    turned_halves,
    whole_rows,
)


class Tiling(NamedTuple):
    """How the gradients of a head are made."""

    is_split: bool
    """Whether queries have programs of their own, apart from keys and values."""
    tile: int
    """Positions whose gradients a program makes at a time; all queries where it is not split."""
    depth: int
    """Positions it goes through at a time to make them."""
    warps: int
    registers: int | None
    """At most so many of a thread: fewer let more programs run at once."""


BACKWARD = {
    32: Tiling(False, 128, 32, 4, 128),
    64: Tiling(True, 64, 32, 4, 128),
    128: Tiling(False, 128, 32, 4, None),
}
"""By head width: the fastest of those tried on an H200 at 95 positions."""


@triton.jit
def _query_side(
    query, out, grad_out, normaliser, tokens, rotary, row, start, query_stride, out_stride, window,
    NUM_QUERIES: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr, QUERIES: tl.constexpr,
    HALF: tl.constexpr, IS_TABLE: tl.constexpr,
):  # fmt: skip
    """A tile of turned queries, the gradient of what they read, and what goes with them."""
    index = start + tl.arange(0, QUERIES)
    is_query, position, here = index < NUM_QUERIES, FIRST + index * STEP, row * NUM_QUERIES + index
    source = source_of(tokens, here, is_query, IS_TABLE)
    q_1, q_2 = turned_halves(query, source, position, is_query, query_stride, rotary, window, HALF)
    g = whole_rows(grad_out, here, is_query, out_stride, 2 * HALF)
    o = whole_rows(out, here, is_query, out_stride, 2 * HALF)
    inner = tl.sum(g.to(tl.float32) * o.to(tl.float32), axis=1)
    # A query that is not there sees nothing: what it would see weighs 2^-inf.
    norm = tl.load(normaliser + index, mask=is_query, other=float("inf"))
    return q_1, q_2, g, inner, norm, position


@triton.jit
def _key_side(
    key, value, tokens, rotary, row, start, key_stride, window,
    NUM_KEYS: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr, IS_TABLE: tl.constexpr,
):  # fmt: skip
    """A tile of turned keys and their values."""
    index = start + tl.arange(0, KEYS)
    is_key = index < NUM_KEYS
    source = source_of(tokens, row * NUM_KEYS + index, is_key, IS_TABLE)
    k_1, k_2 = turned_halves(key, source, index, is_key, key_stride, rotary, window, HALF)
    return k_1, k_2, whole_rows(value, source, is_key, key_stride, 2 * HALF), index


@triton.jit
def _split_backward(
    query, key, value, out, normaliser, grad_out, grad_query, grad_key, grad_value, tokens, rotary,
    query_stride, key_stride, out_stride, grad_query_stride, grad_key_stride, window, scale,
    plain_scale,
    HEADS: tl.constexpr, NUM_QUERIES: tl.constexpr, NUM_KEYS: tl.constexpr, FIRST: tl.constexpr,
    STEP: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, HALF: tl.constexpr,
    IS_TABLE: tl.constexpr,
):  # fmt: skip
    query_tiles: tl.constexpr = (NUM_QUERIES + TILE - 1) // TILE
    row, channel = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS * 2 * HALF
    query, key, value = query + channel, key + channel, value + channel
    out, grad_out = out + channel, grad_out + channel
    normaliser += tl.program_id(1) * NUM_QUERIES
    # Some programs make the gradients of queries, the others those of keys and values. Both need
    # all scores; to compute them twice takes less time than to hold all gradients at once.
    if tl.program_id(0) < query_tiles:
        start = tl.program_id(0) * TILE
        q_1, q_2, g, inner, norm, position = _query_side(
            query, out, grad_out, normaliser, tokens, rotary, row, start, query_stride, out_stride,
            window, NUM_QUERIES, FIRST, STEP, TILE, HALF, IS_TABLE,
        )  # fmt: skip
        of_query_1 = tl.zeros([TILE, HALF], tl.float32)
        of_query_2 = tl.zeros([TILE, HALF], tl.float32)
        end = tl.minimum(NUM_KEYS, FIRST + (start + TILE - 1) * STEP + 1)
        for key_start in range(0, end, DEPTH):
            k_1, k_2, v, key_index = _key_side(
                key, value, tokens, rotary, row, key_start, key_stride, window,
                NUM_KEYS, DEPTH, HALF, IS_TABLE,
            )  # fmt: skip
            scores = tl.dot(q_2, tl.trans(k_2), tl.dot(q_1, tl.trans(k_1))) * scale
            may_see = key_index[None, :] <= position[:, None]
            probs = tl.where(may_see, tl.exp2(scores - norm[:, None]), 0.0)
            grad_scores = probs * (tl.dot(g, tl.trans(v)) - inner[:, None]) * plain_scale
            grad_scores = grad_scores.to(v.dtype)
            of_query_1 = tl.dot(grad_scores, k_1, of_query_1)
            of_query_2 = tl.dot(grad_scores, k_2, of_query_2)
        index = start + tl.arange(0, TILE)
        store_turned_back(
            grad_query + channel, row * NUM_QUERIES + index, position, index < NUM_QUERIES,
            grad_query_stride, of_query_1, of_query_2, rotary, window, HALF,
        )  # fmt: skip
    else:
        key_start = (tl.program_id(0) - query_tiles) * TILE
        k_1, k_2, v, key_index = _key_side(
            key, value, tokens, rotary, row, key_start, key_stride, window,
            NUM_KEYS, TILE, HALF, IS_TABLE,
        )  # fmt: skip
        of_key_1 = tl.zeros([TILE, HALF], tl.float32)
        of_key_2 = tl.zeros([TILE, HALF], tl.float32)
        of_value = tl.zeros([TILE, 2 * HALF], tl.float32)
        # The first query that sees any of these keys, at the start of its tile.
        begin = tl.maximum(0, key_start - FIRST + STEP - 1) // STEP // DEPTH * DEPTH
        for start in range(begin, NUM_QUERIES, DEPTH):
            q_1, q_2, g, inner, norm, position = _query_side(
                query, out, grad_out, normaliser, tokens, rotary, row, start, query_stride,
                out_stride, window, NUM_QUERIES, FIRST, STEP, DEPTH, HALF, IS_TABLE,
            )  # fmt: skip
            # Keys down, queries across: no tile has to be turned over.
            scores = tl.dot(k_2, tl.trans(q_2), tl.dot(k_1, tl.trans(q_1))) * scale
            may_see = key_index[:, None] <= position[None, :]
            probs = tl.where(may_see, tl.exp2(scores - norm[None, :]), 0.0)
            grad_scores = probs * (tl.dot(v, tl.trans(g)) - inner[None, :]) * plain_scale
            grad_scores = grad_scores.to(v.dtype)
            of_value = tl.dot(probs.to(v.dtype), g, of_value)
            of_key_1 = tl.dot(grad_scores, q_1, of_key_1)
            of_key_2 = tl.dot(grad_scores, q_2, of_key_2)
        here, is_key = row * NUM_KEYS + key_index, key_index < NUM_KEYS
        store_rows(grad_value + channel, here, is_key, grad_key_stride, of_value, 2 * HALF)
        store_turned_back(
            grad_key + channel, here, key_index, is_key, grad_key_stride, of_key_1, of_key_2,
            rotary, window, HALF,
        )  # fmt: skip


@triton.jit
def _whole_backward(
    query, key, value, out, normaliser, grad_out, grad_query, grad_key, grad_value, tokens, rotary,
    query_stride, key_stride, out_stride, grad_query_stride, grad_key_stride, window, scale,
    plain_scale,
    HEADS: tl.constexpr, NUM_QUERIES: tl.constexpr, NUM_KEYS: tl.constexpr, FIRST: tl.constexpr,
    STEP: tl.constexpr, QUERIES: tl.constexpr, DEPTH: tl.constexpr, HALF: tl.constexpr,
    IS_TABLE: tl.constexpr,
):  # fmt: skip
    row, channel = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS * 2 * HALF
    query, key, value = query + channel, key + channel, value + channel
    out, grad_out = out + channel, grad_out + channel
    normaliser += tl.program_id(0) * NUM_QUERIES
    q_1, q_2, g, inner, norm, position = _query_side(
        query, out, grad_out, normaliser, tokens, rotary, row, 0, query_stride, out_stride,
        window, NUM_QUERIES, FIRST, STEP, QUERIES, HALF, IS_TABLE,
    )  # fmt: skip
    of_query_1 = tl.zeros([QUERIES, HALF], tl.float32)
    of_query_2 = tl.zeros([QUERIES, HALF], tl.float32)
    for key_start in range(0, NUM_KEYS, DEPTH):
        k_1, k_2, v, key_index = _key_side(
            key, value, tokens, rotary, row, key_start, key_stride, window,
            NUM_KEYS, DEPTH, HALF, IS_TABLE,
        )  # fmt: skip
        scores = tl.dot(q_2, tl.trans(k_2), tl.dot(q_1, tl.trans(k_1))) * scale
        may_see = key_index[None, :] <= position[:, None]
        probs = tl.where(may_see, tl.exp2(scores - norm[:, None]), 0.0)
        grad_scores = probs * (tl.dot(g, tl.trans(v)) - inner[:, None]) * plain_scale
        grad_scores = grad_scores.to(v.dtype)
        of_query_1 = tl.dot(grad_scores, k_1, of_query_1)
        of_query_2 = tl.dot(grad_scores, k_2, of_query_2)
        probs, grad_scores = tl.trans(probs.to(v.dtype)), tl.trans(grad_scores)
        here, is_key = row * NUM_KEYS + key_index, key_index < NUM_KEYS
        store_rows(grad_value + channel, here, is_key, grad_key_stride, tl.dot(probs, g), 2 * HALF)
        store_turned_back(
            grad_key + channel, here, key_index, is_key, grad_key_stride,
            tl.dot(grad_scores, q_1), tl.dot(grad_scores, q_2), rotary, window, HALF,
        )  # fmt: skip
    index = tl.arange(0, QUERIES)
    store_turned_back(
        grad_query + channel, row * NUM_QUERIES + index, position, index < NUM_QUERIES,
        grad_query_stride, of_query_1, of_query_2, rotary, window, HALF,
    )  # fmt: skip


def attend_backward(
    inputs, tokens, saved, gradients, rotary, num_heads: int, shape: tuple[int, int, int], asking
):
    """Fill `gradients` of queries, keys and values; `saved` is out, normaliser, its gradient."""
    query, key, _ = inputs
    rows, num_queries, num_keys = shape
    width = query.shape[1]
    head_width = width // num_heads
    tiling = BACKWARD[head_width]
    scale = head_width**-0.5
    out, normaliser, grad_out = saved
    arguments = (
        *inputs, out, normaliser, grad_out, *gradients, out if tokens is None else tokens, rotary,
        query.stride(0), key.stride(0), width, gradients[0].stride(0), gradients[1].stride(0),
        rotary.shape[1], scale * LOG2_E, scale,
    )  # fmt: skip
    settings = {
        "HEADS": num_heads, "NUM_QUERIES": num_queries, "NUM_KEYS": num_keys,
        "FIRST": asking.first, "STEP": asking.step, "DEPTH": tiling.depth, "HALF": head_width // 2,
        "IS_TABLE": tokens is not None, "num_warps": tiling.warps, "num_stages": 1,
    }  # fmt: skip
    if tiling.registers is not None:
        settings["maxnreg"] = tiling.registers
    if tiling.is_split:
        programs = triton.cdiv(num_queries, tiling.tile) + triton.cdiv(num_keys, tiling.tile)
        _split_backward[(programs, rows * num_heads)](*arguments, TILE=tiling.tile, **settings)
        return
    # As few as matrix units work on where there are few queries.
    tile = min(tiling.tile, max(16, triton.next_power_of_2(num_queries)))
    _whole_backward[(rows * num_heads,)](*arguments, QUERIES=tile, **settings)
