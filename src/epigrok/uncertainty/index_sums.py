"""Sums of values that share an index, in an order that does not change.

Letters: N values, M sums.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def sums_by_index(
    values: Float[Tensor, "*shape N"], index: Int[Tensor, "*shape N"], size: int
) -> Float[Tensor, "*shape {size}"]:
    """Along the last axis: sum `m` adds the values whose index is `m`."""
    if values.is_cuda:
        # Scattering adds with atomic operations, in whatever order threads come.
        parts = [values.where(index == m, 0.0).sum(dim=-1) for m in range(size)]
        return torch.stack(parts, dim=-1)
    return values.new_zeros(*values.shape[:-1], size).scatter_add_(-1, index, values)
