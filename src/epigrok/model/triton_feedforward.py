"""A matrix product that leaves out what a ReLU has blocked, in one GPU kernel.

Done apart, masking reads and writes the widest activations of the network once more, which takes as
long as the product. The GPU fetches whole tiles by itself (Hopper and later).

Letters: N positions of all rows, D width, F feed-forward width.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor


class Tiling(NamedTuple):
    """Positions and channels of a tile of the result, depth of a step, and how it is worked on."""

    positions: int
    channels: int
    depth: int
    group: int
    """Tiles of positions that take turns, so that tiles of weights are still in the cache."""
    stages: int
    warps: int


_TILING = Tiling(128, 128, 64, group=8, stages=3, warps=4)
"""The fastest of those tried on an H200 at widths 256 and 512."""


@triton.jit
def _kernel(
    grad, weight, inner, out, num_positions,
    F: tl.constexpr, D: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
    DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tiles_across = F // CHANNELS
    first = tl.program_id(0) // (GROUP * tiles_across) * GROUP
    in_group = min(tl.cdiv(num_positions, POSITIONS) - first, GROUP)
    place = tl.program_id(0) % (GROUP * tiles_across)
    position = (first + place % in_group) * POSITIONS
    channel = place // in_group * CHANNELS
    total = tl.zeros((POSITIONS, CHANNELS), tl.float32)
    for depth in range(0, D, DEPTH):
        total = tl.dot(grad.load([position, depth]), weight.load([depth, channel]), total)
    let_through = inner.load([position, channel]) > 0
    out.store([position, channel], tl.where(let_through, total, 0.0).to(tl.bfloat16))


def masked_product(grad_ND: Tensor, weight_DF: Tensor, inner_NF: Tensor) -> Tensor:
    """In bfloat16: grad · weight where `inner` is positive, and 0 elsewhere."""
    (num_positions, width), inner_width = grad_ND.shape, weight_DF.shape[1]
    out_NF = torch.empty_like(inner_NF)
    rows, columns, depth = _TILING.positions, _TILING.channels, _TILING.depth
    _kernel[(triton.cdiv(num_positions, rows) * (inner_width // columns),)](
        TensorDescriptor.from_tensor(grad_ND, [rows, depth]),
        TensorDescriptor.from_tensor(weight_DF, [depth, columns]),
        TensorDescriptor.from_tensor(inner_NF, [rows, columns]),
        TensorDescriptor.from_tensor(out_NF, [rows, columns]),
        num_positions, F=inner_width, D=width, POSITIONS=rows, CHANNELS=columns, DEPTH=depth,
        GROUP=_TILING.group, num_stages=_TILING.stages, num_warps=_TILING.warps,
    )  # fmt: skip
    return out_NF
