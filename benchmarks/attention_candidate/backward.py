# ruff: noqa: PLR0913, PLR0917
"""Gradients of attention with rotary encoding, in bfloat16 kernels.

The usual scheme (Dao 2023): probabilities are recomputed from the saved normaliser of each query.
One program makes all gradients of one head of one sequence, so that nothing is added up across
programs. It goes through the keys tile by tile, and for each of them through the queries that see
any.

Letters: B sequences, T queries, L keys, N positions of all sequences, D width (of all heads),
W window.
"""

import math

import triton
import triton.language as tl

from benchmarks.attention_candidate.forward import (
    Tiling,
    angles_at,
    halves_of,
    indices_of,
    source_of,
    store_rows,
    turned,
    turning_factor,
    whole_rows,
)

BACKWARD = {
    32: Tiling(32, 32, 2, 168),
    64: Tiling(32, 64, 4, 255, keeps=True),
    128: Tiling(32, 64, 4, 255, keeps=True),
}
"""By head width: the fastest right ones of those tried on an H200 at 95 positions."""


@triton.jit
def _turned_rows(
    pointer, tokens, rotary, row, there, stride, window, factor, number,
    FIRST: tl.constexpr, STEP: tl.constexpr, HALF: tl.constexpr, IS_TABLE: tl.constexpr,
):  # fmt: skip
    """Turned queries or keys, and the rows they come from."""
    source = source_of(tokens, row * number + there, IS_TABLE)
    first, second = halves_of(pointer, source, stride, HALF)
    cosines, sines = angles_at(rotary, FIRST + there * STEP, window, factor, HALF)
    first, second = turned(first, second, cosines, sines)
    return first, second, source


@triton.jit
def _store_turned_back(
    pointer, rotary, row, index, there, stride, window, factor, first, second, number,
    FIRST: tl.constexpr, STEP: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Gradients of what was turned: turning back is turning by the opposite angle."""
    cosines, sines = angles_at(rotary, FIRST + there * STEP, window, factor, HALF)
    target, is_there = row * number + index, index < number
    store_rows(pointer, target, is_there, stride, first * cosines + second * sines, HALF)
    store_rows(pointer + HALF, target, is_there, stride, second * cosines - first * sines, HALF)


@triton.jit
def _query_side(
    query, grad_out, tokens, rotary, row, there, query_stride, out_stride, window, factor, number,
    FIRST: tl.constexpr, STEP: tl.constexpr, HALF: tl.constexpr, IS_TABLE: tl.constexpr,
):  # fmt: skip
    """Turned queries and the gradients of what they read."""
    q_1, q_2, _ = _turned_rows(
        query, tokens, rotary, row, there, query_stride, window, factor, number, FIRST, STEP, HALF,
        IS_TABLE,
    )  # fmt: skip
    return q_1, q_2, whole_rows(grad_out, row * number + there, out_stride, 2 * HALF)


@triton.jit
def _probs_and_grad_scores(
    k_1, k_2, v, q_1, q_2, g, norm, inner, AHEAD: tl.constexpr, STEP: tl.constexpr
):
    """Keys down, queries across: so neither has to be turned over to make gradients of keys.

    The first query is `AHEAD` positions after the first key.
    """
    scores = tl.dot(k_2, tl.trans(q_2), tl.dot(k_1, tl.trans(q_1)))
    probs = tl.exp2(scores - norm[None, :])
    if k_1.shape[0] - 1 > AHEAD:
        position = AHEAD + tl.arange(0, q_1.shape[0]) * STEP
        may_see = tl.arange(0, k_1.shape[0])[:, None] <= position[None, :]
        probs = tl.where(may_see, probs, 0.0)
    grad_scores = probs * (tl.dot(v, tl.trans(g)) - inner[None, :])
    return probs.to(v.dtype), grad_scores.to(v.dtype)


@triton.jit
def _attention_backward(
    query, key, value, out, normaliser, grad_out, grad_query, grad_key, grad_value, tokens, rotary,
    query_stride, key_stride, out_stride, grad_query_stride, grad_key_stride, window, factor,
    back_factor, num_queries, num_keys,
    HEADS: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, QUERY_TILES: tl.constexpr, KEY_TILES: tl.constexpr, HALF: tl.constexpr,
    IS_TABLE: tl.constexpr, KEEPS: tl.constexpr,
):  # fmt: skip
    row, channel = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS * 2 * HALF
    query, key, value, grad_out = (
        query + channel,
        key + channel,
        value + channel,
        grad_out + channel,
    )
    inners, norms, kept, of_queries = (), (), (), ()
    for tile in tl.static_range(QUERY_TILES):
        index, there = indices_of(tile, QUERIES, QUERY_TILES, num_queries)
        q_1, q_2, g = _query_side(
            query, grad_out, tokens, rotary, row, there, query_stride, out_stride, window, factor,
            num_queries, FIRST, STEP, HALF, IS_TABLE,
        )  # fmt: skip
        kept += ((q_1, q_2, g),)
        o = whole_rows(out + channel, row * num_queries + there, out_stride, 2 * HALF)
        inners += (tl.sum(g.to(tl.float32) * o.to(tl.float32), axis=1),)
        place = normaliser + tl.program_id(0) * num_queries + index
        # A query that is not there sees nothing: what it would see weighs 2^-inf.
        norms += (tl.load(place, mask=index < num_queries, other=float("inf")),)
        of_queries += (tl.zeros([QUERIES, HALF], tl.float32), tl.zeros([QUERIES, HALF], tl.float32))
    for key_tile in tl.static_range(KEY_TILES):
        key_index, key_there = indices_of(key_tile, KEYS, KEY_TILES, num_keys)
        k_1, k_2, source = _turned_rows(
            key, tokens, rotary, row, key_there, key_stride, window, factor, num_keys, 0, 1, HALF,
            IS_TABLE,
        )  # fmt: skip
        v = whole_rows(value, source, key_stride, 2 * HALF)
        of_key_1 = tl.zeros([KEYS, HALF], tl.float32)
        of_key_2 = tl.zeros([KEYS, HALF], tl.float32)
        of_value = tl.zeros([KEYS, 2 * HALF], tl.float32)
        before, of_queries = of_queries, ()
        for tile in tl.static_range(QUERY_TILES):
            of_query_1, of_query_2 = before[2 * tile], before[2 * tile + 1]
            if FIRST + ((tile + 1) * QUERIES - 1) * STEP >= key_tile * KEYS:
                index, there = indices_of(tile, QUERIES, QUERY_TILES, num_queries)
                q_1, q_2, g = kept[tile]
                if not KEEPS:
                    q_1, q_2, g = _query_side(
                        query, grad_out, tokens, rotary, row, there, query_stride, out_stride,
                        window, factor, num_queries, FIRST, STEP, HALF, IS_TABLE,
                    )  # fmt: skip
                probs, grad_scores = _probs_and_grad_scores(
                    k_1, k_2, v, q_1, q_2, g, norms[tile], inners[tile],
                    FIRST + tile * QUERIES * STEP - key_tile * KEYS, STEP,
                )  # fmt: skip
                of_value = tl.dot(probs, g, of_value)
                of_key_1 = tl.dot(grad_scores, q_1, of_key_1)
                of_key_2 = tl.dot(grad_scores, q_2, of_key_2)
                of_query_1 = tl.dot(tl.trans(grad_scores), k_1, of_query_1)
                of_query_2 = tl.dot(tl.trans(grad_scores), k_2, of_query_2)
                if FIRST + ((tile + 1) * QUERIES - 1) * STEP < (key_tile + 1) * KEYS or (
                    key_tile == KEY_TILES - 1
                ):
                    _store_turned_back(
                        grad_query + channel, rotary, row, index, there, grad_query_stride, window,
                        back_factor, of_query_1, of_query_2, num_queries, FIRST, STEP, HALF,
                    )  # fmt: skip
            of_queries += (of_query_1, of_query_2)
        here, is_key = row * num_keys + key_index, key_index < num_keys
        store_rows(grad_value + channel, here, is_key, grad_key_stride, of_value, 2 * HALF)
        _store_turned_back(
            grad_key + channel, rotary, row, key_index, key_there, grad_key_stride, window,
            back_factor, of_key_1, of_key_2, num_keys, 0, 1, HALF,
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
    # As few as matrix units work on where there are few queries.
    queries = min(tiling.queries, max(16, triton.next_power_of_2(num_queries)))
    factor = turning_factor(head_width)
    out, normaliser, grad_out = saved
    _attention_backward[(rows * num_heads,)](
        *inputs, out, normaliser, grad_out, *gradients, out if tokens is None else tokens, rotary,
        query.stride(0), key.stride(0), width, gradients[0].stride(0), gradients[1].stride(0),
        # Scores of base 2 are those of base e over ln 2.
        rotary.shape[1], factor, factor * math.log(2), num_queries, num_keys,
        HEADS=num_heads, FIRST=asking.first, STEP=asking.step, QUERIES=queries, KEYS=tiling.keys,
        QUERY_TILES=triton.cdiv(num_queries, queries),
        KEY_TILES=triton.cdiv(num_keys, tiling.keys), HALF=head_width // 2,
        IS_TABLE=tokens is not None, KEEPS=tiling.keeps, **tiling.limits(),
    )  # fmt: skip
