"""The feed-forward layer: two products, with the ReLU between them fused into one of them.

Done apart, masking reads and writes the widest activations of the network once more, which takes as
long as a product. Narrow networks wait for memory, not for multipliers: for them both products are
one kernel, which writes what lies between but does not read it again. The GPU fetches whole tiles
by itself (Hopper and later).

Letters: N positions of all sequences, D width, F feed-forward width.
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
_WIDEST_AT_ONCE = 128
"""Width up to which both products are one kernel; at 256 there is no room for their tiles."""
_AT_ONCE = {"POSITIONS": 128, "CHANNELS": 64, "num_warps": 4, "num_stages": 3}
"""The fastest of those tried on an H200 at width 128."""


@triton.jit
def _masked_product(
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


@triton.jit
def _forward_at_once(
    x, into, out_of, inner, out,
    F: tl.constexpr, D: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    position = tl.program_id(0) * POSITIONS
    rows = x.load([position, 0])
    total = tl.zeros([POSITIONS, D], tl.float32)
    for channel in range(0, F, CHANNELS):
        between = tl.dot(rows, tl.trans(into.load([channel, 0])))
        between = tl.maximum(between, 0.0).to(tl.bfloat16)
        inner.store([position, channel], between)
        total = tl.dot(between, tl.trans(out_of.load([0, channel])), total)
    out.store([position, 0], total.to(tl.bfloat16))


@triton.jit
def _backward_at_once(
    grad, into, out_of, inner, grad_inner, grad_x,
    F: tl.constexpr, D: tl.constexpr, POSITIONS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    position = tl.program_id(0) * POSITIONS
    rows = grad.load([position, 0])
    total = tl.zeros([POSITIONS, D], tl.float32)
    for channel in range(0, F, CHANNELS):
        between = tl.dot(rows, out_of.load([0, channel]))
        let_through = inner.load([position, channel]) > 0
        between = tl.where(let_through, between, 0.0).to(tl.bfloat16)
        grad_inner.store([position, channel], between)
        total = tl.dot(between, into.load([channel, 0]), total)
    grad_x.store([position, 0], total.to(tl.bfloat16))


def feedforward_forward(x_ND: Tensor, into_FD: Tensor, out_of_DF: Tensor) -> tuple[Tensor, Tensor]:
    """relu(x · intoᵀ), and its product with out_ofᵀ."""
    if not _is_one_kernel(x_ND):
        # The product writes its result rectified; it wants a bias, so nothing is added.
        nothing_F = x_ND.new_zeros(len(into_FD))
        inner_NF = torch._addmm_activation(nothing_F, x_ND, into_FD.t())
        return inner_NF, inner_NF @ out_of_DF.t()
    inner_NF, out_ND = x_ND.new_empty(len(x_ND), len(into_FD)), torch.empty_like(x_ND)
    _at_once(_forward_at_once, x_ND, (into_FD, out_of_DF), (inner_NF,), out_ND)
    return inner_NF, out_ND


def feedforward_backward(
    grad_ND: Tensor, into_FD: Tensor, out_of_DF: Tensor, inner_NF: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients before the ReLU and before the first product."""
    if not _is_one_kernel(grad_ND):
        grad_inner_NF = masked_product(grad_ND, out_of_DF, inner_NF)
        return grad_inner_NF, grad_inner_NF @ into_FD
    grad_inner_NF, grad_x_ND = torch.empty_like(inner_NF), torch.empty_like(grad_ND)
    between = (inner_NF, grad_inner_NF)
    _at_once(_backward_at_once, grad_ND, (into_FD, out_of_DF), between, grad_x_ND)
    return grad_inner_NF, grad_x_ND


def masked_product(grad_ND: Tensor, weight_DF: Tensor, inner_NF: Tensor) -> Tensor:
    """The product grad · weight where `inner` is positive, and 0 elsewhere."""
    if not _fetches_tiles(grad_ND):
        return (grad_ND @ weight_DF).where(inner_NF > 0, 0.0)
    (num_positions, width), inner_width = grad_ND.shape, weight_DF.shape[1]
    out_NF = torch.empty_like(inner_NF)
    rows, columns, depth = _TILING.positions, _TILING.channels, _TILING.depth
    _masked_product[(triton.cdiv(num_positions, rows) * (inner_width // columns),)](
        TensorDescriptor.from_tensor(grad_ND, [rows, depth]),
        TensorDescriptor.from_tensor(weight_DF, [depth, columns]),
        TensorDescriptor.from_tensor(inner_NF, [rows, columns]),
        TensorDescriptor.from_tensor(out_NF, [rows, columns]),
        num_positions, F=inner_width, D=width, POSITIONS=rows, CHANNELS=columns, DEPTH=depth,
        GROUP=_TILING.group, num_stages=_TILING.stages, num_warps=_TILING.warps,
    )  # fmt: skip
    return out_NF


def _at_once(kernel, rows_ND, weights, between, out_ND) -> None:
    """Start one of the kernels that do both products."""
    into_FD, out_of_DF = weights
    (num_positions, width), inner_width = rows_ND.shape, len(into_FD)
    positions, channels = _AT_ONCE["POSITIONS"], _AT_ONCE["CHANNELS"]
    kernel[(triton.cdiv(num_positions, positions),)](
        TensorDescriptor.from_tensor(rows_ND, [positions, width]),
        TensorDescriptor.from_tensor(into_FD, [channels, width]),
        TensorDescriptor.from_tensor(out_of_DF, [width, channels]),
        *(TensorDescriptor.from_tensor(tensor, [positions, channels]) for tensor in between),
        TensorDescriptor.from_tensor(out_ND, [positions, width]),
        F=inner_width, D=width, **_AT_ONCE,
    )  # fmt: skip


def _is_one_kernel(rows_ND: Tensor) -> bool:
    return rows_ND.shape[1] <= _WIDEST_AT_ONCE and _fetches_tiles(rows_ND)


def _fetches_tiles(tensor: Tensor) -> bool:
    return torch.cuda.get_device_capability(tensor.device) >= (9, 0)
