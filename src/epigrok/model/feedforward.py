"""ReLU of a projection, as one operation: on a GPU the product writes its result rectified.

Letters: N positions of all rows, D width, F feed-forward width.
"""

import torch
from jaxtyping import Float
from torch import Tensor, library
from torch.nn import functional


def rectified_linear(
    x_BTD: Float[Tensor, "B T D"], weight_FD: Float[Tensor, "F D"]
) -> Float[Tensor, "B T F"]:
    """relu(x · weightᵀ)."""
    if not (x_BTD.is_cuda and torch.is_autocast_enabled("cuda")):
        return functional.relu(functional.linear(x_BTD, weight_FD))
    kind = torch.get_autocast_dtype("cuda")
    positions_ND = x_BTD.to(kind).flatten(end_dim=1)
    return _rectified(positions_ND, weight_FD.to(kind)).unflatten(0, x_BTD.shape[:2])


@library.custom_op("epigrok::rectified_linear", mutates_args=())
def _rectified(x_ND: Tensor, weight_FD: Tensor) -> Tensor:
    # The library's fused product wants a bias; nothing is added.
    nothing_F = x_ND.new_zeros(weight_FD.shape[0])
    return torch._addmm_activation(nothing_F, x_ND, weight_FD.t())


@_rectified.register_fake
def _(x_ND: Tensor, weight_FD: Tensor) -> Tensor:
    return x_ND.new_empty(x_ND.shape[0], weight_FD.shape[0])


def _keep(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor, ...], output: Tensor
) -> None:
    ctx.save_for_backward(*inputs, output)


def _gradients(ctx: torch.autograd.function.FunctionCtx, grad_NF: Tensor) -> tuple[Tensor, Tensor]:
    x_ND, weight_FD, out_NF = ctx.saved_tensors  # type: ignore[attr-defined]
    grad_NF = grad_NF.where(out_NF > 0, 0.0)
    return grad_NF @ weight_FD, grad_NF.t() @ x_ND


_rectified.register_autograd(_gradients, setup_context=_keep)
