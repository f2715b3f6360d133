"""Gradients of a look-up: rows added up by their token, always in the same order.

The usual gradient of an embedding adds with atomic operations, in whatever order threads come. Here
each program adds its share of the positions by a product with their one-hot codes, and the shares
are added in order.

Letters: N positions, E columns, C tokens.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_POSITIONS, _COLUMNS = 128, 64
"""Of a tile."""
_SHARES = 64


@triton.jit
def _token_sums(
    values, tokens, out, num_positions, per_share, num_columns,
    C: tl.constexpr, POSITIONS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.program_id(1) * per_share
    end = tl.minimum(begin + per_share, num_positions)
    token = tl.arange(0, C)
    total = tl.zeros([C, COLUMNS], tl.float32)
    for start in range(begin, end, POSITIONS):
        position = start + tl.arange(0, POSITIONS)
        is_there = position < end
        seen = tl.load(tokens + position, mask=is_there, other=-1)
        place = values + position[:, None] * num_columns + column[None, :]
        rows = tl.load(place, mask=is_there[:, None], other=0.0)
        is_token = tl.where(token[:, None] == seen[None, :], 1.0, 0.0).to(rows.dtype)
        total = tl.dot(is_token, rows, total)
    place = out + tl.program_id(1) * C * num_columns + token[:, None] * num_columns
    tl.store(place + column[None, :], total)


def sums_by_token(values: Tensor, tokens: Tensor, num_tokens: int) -> Tensor:
    """(C, E) in float32: for each token the sum of `values` (N, E) at its positions.

    E must be a multiple of 64 and C a power of two of at least 16.
    """
    num_positions, num_columns = values.shape
    per_share = triton.cdiv(triton.cdiv(num_positions, _SHARES), _POSITIONS) * _POSITIONS
    shares = triton.cdiv(num_positions, per_share)
    out = values.new_empty(shares, num_tokens, num_columns, dtype=torch.float32)
    _token_sums[(num_columns // _COLUMNS, shares)](
        values, tokens, out, num_positions, per_share, num_columns,
        C=num_tokens, POSITIONS=_POSITIONS, COLUMNS=_COLUMNS, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out.sum(dim=0)
