# ruff: noqa: PLR0913, PLR0917
"""Causal attention with rotary encoding inside a GPU kernel, for short windows.

One program makes one head of one sequence, so that every key is turned once and never written back
turned. All loops over tiles are unrolled: what no query of a tile sees is left out, and only tiles
on the diagonal are masked. Same result as the plain path of `model.attention` up to the rounding of
the inputs' precision. In the first block of a training step the projections of a position are a row
of a table, chosen by its token: the kernels look them up and nobody writes them out.

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
    registers: int | None = None
    """At most so many of a thread: fewer let more programs run at once."""
    keeps: bool = False
    """Whether the backward pass keeps turned queries; otherwise it reads and turns them again."""

    def limits(self) -> dict[str, int]:
        """What Triton is told."""
        limits = {"num_warps": self.warps, "num_stages": 1}
        return limits if self.registers is None else limits | {"maxnreg": self.registers}


class Asking(NamedTuple):
    """Which positions of a sequence have queries: `first`, `first + step` and so on."""

    first: int
    step: int


EVERYWHERE = Asking(0, 1)
FORWARD = {32: Tiling(32, 32, 1, 168), 64: Tiling(64, 32, 4, 96), 128: Tiling(64, 32, 4, 168)}
"""By head width, in bfloat16: the fastest right ones of those in `benchmarks.attention_variants`,
tried on an H200 at 95 positions."""
_FORWARD_SINGLE = Tiling(64, 32, 4)
"""In float32."""


@triton.jit
def indices_of(TILE: tl.constexpr, LENGTH: tl.constexpr, TILES: tl.constexpr, number):
    """The indices of a tile, and the same with the last there is in place of those past it.

    So what is loaded needs no mask: it is always something finite.
    """
    index = TILE * LENGTH + tl.arange(0, LENGTH)
    if TILE + 1 < TILES:
        return index, index
    return index, tl.minimum(index, number - 1)


@triton.jit
def source_of(tokens, position, IS_TABLE: tl.constexpr):
    """The row that holds the projections of a position: its own, or its token's."""
    if IS_TABLE:
        return tl.load(tokens + position)
    return position


@triton.jit
def whole_rows(pointer, source, stride, WIDTH: tl.constexpr):
    """All channels of a head in the rows `source`."""
    return tl.load(pointer + source[:, None] * stride + tl.arange(0, WIDTH)[None, :])


@triton.jit
def halves_of(pointer, source, stride, HALF: tl.constexpr):
    """Both halves of a head's channels in the rows `source`."""
    place = pointer + source[:, None] * stride + tl.arange(0, HALF)[None, :]
    return tl.load(place), tl.load(place + HALF)


@triton.jit
def angles_at(rotary, position, window, factor, HALF: tl.constexpr):
    """Cosines and sines times `factor`."""
    place = rotary + position[:, None] * (2 * HALF) + tl.arange(0, HALF)[None, :]
    cosines, sines = tl.load(place), tl.load(place + window * 2 * HALF)
    return cosines.to(tl.float32) * factor, sines.to(tl.float32) * factor


@triton.jit
def turned(first, second, cosines, sines):
    """Both halves turned, in the precision they come in."""
    kind = first.dtype
    return (first * cosines - second * sines).to(kind), (second * cosines + first * sines).to(kind)


@triton.jit
def store_rows(pointer, target, is_there, stride, values, WIDTH: tl.constexpr):
    place = pointer + target[:, None] * stride + tl.arange(0, WIDTH)[None, :]
    tl.store(place, values.to(pointer.dtype.element_ty), mask=is_there[:, None])


@triton.jit
def _attention_forward(
    query, key, value, out, normaliser, tokens, rotary, query_stride, key_stride, out_stride,
    num_queries, num_keys, window, factor,
    HEADS: tl.constexpr, FIRST: tl.constexpr, STEP: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, QUERY_TILES: tl.constexpr, KEY_TILES: tl.constexpr, HALF: tl.constexpr,
    IS_TABLE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, channel = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS * 2 * HALF
    turned_keys, values, angles = (), (), ()
    for tile in tl.static_range(QUERY_TILES):
        # Keys come with the first queries that see them.
        for new in tl.static_range(
            len(values), min(KEY_TILES, (FIRST + ((tile + 1) * QUERIES - 1) * STEP) // KEYS + 1)
        ):
            _, key_index = indices_of(new, KEYS, KEY_TILES, num_keys)
            source = source_of(tokens, row * num_keys + key_index, IS_TABLE)
            k_1, k_2 = halves_of(key + channel, source, key_stride, HALF)
            values += (whole_rows(value + channel, source, key_stride, 2 * HALF),)
            angles += (angles_at(rotary, key_index, window, factor, HALF),)
            turned_keys += (turned(k_1, k_2, *angles[new]),)
        index, there = indices_of(tile, QUERIES, QUERY_TILES, num_queries)
        source = source_of(tokens, row * num_queries + there, IS_TABLE)
        q_1, q_2 = halves_of(query + channel, source, query_stride, HALF)
        if FIRST == 0 and STEP == 1 and QUERIES == KEYS:
            q_1, q_2 = turned(q_1, q_2, *angles[tile])
        else:
            position = FIRST + there * STEP
            q_1, q_2 = turned(q_1, q_2, *angles_at(rotary, position, window, factor, HALF))
        largest = tl.full([QUERIES], float("-inf"), tl.float32)
        all_scores = ()
        for seen in tl.static_range(len(values)):
            k_1, k_2 = turned_keys[seen]
            scores = tl.dot(q_1, tl.trans(k_1), input_precision=PRECISION)
            scores = tl.dot(q_2, tl.trans(k_2), scores, input_precision=PRECISION)
            if FIRST + tile * QUERIES * STEP < (seen + 1) * KEYS - 1:
                first = FIRST + tile * QUERIES * STEP - seen * KEYS
                position = first + tl.arange(0, QUERIES) * STEP
                may_see = tl.arange(0, KEYS)[None, :] <= position[:, None]
                scores = tl.where(may_see, scores, float("-inf"))
            largest = tl.maximum(largest, tl.max(scores, axis=1))
            all_scores += (scores,)
        total = tl.zeros([QUERIES], tl.float32)
        read = tl.zeros([QUERIES, 2 * HALF], tl.float32)
        for seen in tl.static_range(len(values)):
            weights = tl.exp2(all_scores[seen] - largest[:, None])
            total += tl.sum(weights, axis=1)
            v = values[seen]
            read = tl.dot(weights.to(v.dtype), v, read, input_precision=PRECISION)
        # One division a row instead of one an element.
        read *= (1.0 / total)[:, None]
        is_query = index < num_queries
        store_rows(out + channel, row * num_queries + index, is_query, out_stride, read, 2 * HALF)
        place = normaliser + tl.program_id(0) * num_queries + index
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
    _attention_forward[(rows * num_heads,)](
        *inputs, out, normaliser, out if tokens is None else tokens, rotary,
        query.stride(0), key.stride(0), width, num_queries, num_keys, rotary.shape[1],
        turning_factor(head_width), HEADS=num_heads, FIRST=asking.first, STEP=asking.step,
        QUERIES=tiling.queries, KEYS=tiling.keys,
        QUERY_TILES=triton.cdiv(num_queries, tiling.queries),
        KEY_TILES=triton.cdiv(num_keys, tiling.keys), HALF=head_width // 2,
        IS_TABLE=tokens is not None, PRECISION="tf32" if is_rough else "tf32x3", **tiling.limits(),
    )  # fmt: skip
    return out, normaliser


def turning_factor(head_width: int) -> float:
    """What queries and keys each are multiplied by when they are turned.

    Then their products are the scores, already for powers of two instead of e.
    """
    return (head_width**-0.5 * LOG2_E) ** 0.5
