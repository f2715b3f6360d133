"""Two projections with a ReLU between them; on a GPU nothing is rectified or masked by itself.

Letters: N positions of all rows, D width, F feed-forward width.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, library
from torch.nn import functional


def feedforward(
    x_BTD: Float[Tensor, "B T D"], into_FD: Float[Tensor, "F D"], out_of_DF: Float[Tensor, "D F"]
) -> Float[Tensor, "B T D"]:
    """relu(x · intoᵀ) · out_ofᵀ."""
    if not (x_BTD.is_cuda and torch.is_autocast_enabled("cuda")):
        return functional.linear(functional.relu(functional.linear(x_BTD, into_FD)), out_of_DF)
    kind = torch.get_autocast_dtype("cuda")
    positions_ND = x_BTD.to(kind).flatten(end_dim=1)
    out_ND, _ = _fused(positions_ND, into_FD.to(kind), out_of_DF.to(kind))
    return out_ND.unflatten(0, x_BTD.shape[:2])


@library.custom_op("epigrok::feedforward", mutates_args=())
def _fused(x_ND: Tensor, into_FD: Tensor, out_of_DF: Tensor) -> tuple[Tensor, Tensor]:
    # The product writes its result rectified; it wants a bias, so nothing is added.
    nothing_F = x_ND.new_zeros(into_FD.shape[0])
    inner_NF = torch._addmm_activation(nothing_F, x_ND, into_FD.t())
    return inner_NF @ out_of_DF.t(), inner_NF


@library.custom_op("epigrok::masked_product", mutates_args=())
def _masked_product(grad_ND: Tensor, out_of_DF: Tensor, inner_NF: Tensor) -> Tensor:
    """The gradient before the ReLU: grad · out_of where `inner` let something through."""
    if _fits_kernel(grad_ND, out_of_DF):
        from epigrok.model.triton_feedforward import masked_product

        return masked_product(grad_ND, out_of_DF, inner_NF)
    return (grad_ND @ out_of_DF).where(inner_NF > 0, 0.0)


def _fits_kernel(grad_ND: Tensor, out_of_DF: Tensor) -> bool:
    """Whether the fused product can do it: whole tiles, and a GPU that fetches tiles by itself."""
    width, inner_width = out_of_DF.shape
    return (
        grad_ND.dtype == torch.bfloat16
        and torch.cuda.get_device_capability(grad_ND.device) >= (9, 0)
        and width % 64 == 0
        and inner_width % 128 == 0
    )


@_fused.register_fake
def _(x_ND: Tensor, into_FD: Tensor, out_of_DF: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x_ND), x_ND.new_empty(x_ND.shape[0], into_FD.shape[0])


@_masked_product.register_fake
def _(grad_ND: Tensor, out_of_DF: Tensor, inner_NF: Tensor) -> Tensor:
    return torch.empty_like(inner_NF)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _gradients(ctx: Any, grad_ND: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x_ND, into_FD, out_of_DF, inner_NF = ctx.saved_tensors
    grad_ND = grad_ND.contiguous()
    grad_inner_NF = _masked_product(grad_ND, out_of_DF, inner_NF)
    return grad_inner_NF @ into_FD, grad_inner_NF.t() @ x_ND, grad_ND.t() @ inner_NF


_fused.register_autograd(_gradients, setup_context=_keep)
