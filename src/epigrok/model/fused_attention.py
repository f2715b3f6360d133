"""The attention kernels as operations that differentiate and compile.

Letters: B rows, T queries, L keys, D width.
"""

from typing import Any

import torch
from torch import Tensor, library

from epigrok.model.triton_attention import attend_backward, attend_forward


@library.custom_op("epigrok::self_attention", mutates_args=())
def _self(projected: Tensor, rotary: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    return attend_forward(projected.chunk(3, dim=2), rotary, num_heads, (0, 1))


@library.custom_op("epigrok::self_attention_backward", mutates_args=())
def _self_backward(
    grad_out: Tensor,
    projected: Tensor,
    out: Tensor,
    normaliser: Tensor,
    rotary: Tensor,
    num_heads: int,
) -> Tensor:
    gradient = torch.empty_like(projected)
    parts = gradient.chunk(3, dim=2)
    saved = (out, normaliser, grad_out)
    attend_backward(projected.chunk(3, dim=2), saved, parts, rotary, num_heads, (0, 1))
    return gradient


@library.custom_op("epigrok::asking_attention", mutates_args=())
def _asking(
    query: Tensor, key_value: Tensor, rotary: Tensor, num_heads: int, first: int, step: int
) -> tuple[Tensor, Tensor]:
    return attend_forward((query, *key_value.chunk(2, dim=2)), rotary, num_heads, (first, step))


@library.custom_op("epigrok::asking_attention_backward", mutates_args=())
def _asking_backward(  # noqa: PLR0913, PLR0917
    grad_out: Tensor,
    query: Tensor,
    key_value: Tensor,
    out: Tensor,
    normaliser: Tensor,
    rotary: Tensor,
    num_heads: int,
    first: int,
    step: int,
) -> tuple[Tensor, Tensor]:
    grad_query, grad_key_value = torch.empty_like(query), torch.empty_like(key_value)
    inputs = (query, *key_value.chunk(2, dim=2))
    gradients = (grad_query, *grad_key_value.chunk(2, dim=2))
    saved = (out, normaliser, grad_out)
    attend_backward(inputs, saved, gradients, rotary, num_heads, (first, step))
    return grad_query, grad_key_value


def self_attention(projected: Tensor, rotary: Tensor, num_heads: int) -> Tensor:
    """Attention of every position; (B, L, 3D) queries, keys and values -> (B, L, D)."""
    out: Tensor = _self(projected, rotary, num_heads)[0]
    return out


def asking_attention(
    query: Tensor, key_value: Tensor, rotary: Tensor, num_heads: int, asking: slice
) -> Tensor:
    """Attention of the positions `asking`; (B, T, D) and (B, L, 2D) -> (B, T, D)."""
    out: Tensor = _asking(query, key_value, rotary, num_heads, asking.start, asking.step)[0]
    return out


@_self.register_fake
def _(projected: Tensor, rotary: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    return _unfilled(projected.chunk(3, dim=2)[0], num_heads)


@_self_backward.register_fake
def _(grad_out: Tensor, projected: Tensor, *rest: Any) -> Tensor:
    return torch.empty_like(projected)


@_asking.register_fake
def _(query: Tensor, key_value: Tensor, rotary: Tensor, num_heads: int, *rest: Any) -> Any:
    return _unfilled(query, num_heads)


@_asking_backward.register_fake
def _(grad_out: Tensor, query: Tensor, key_value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(query), torch.empty_like(key_value)


def _unfilled(query: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    rows, num_queries, width = query.shape
    normaliser = query.new_empty(rows * num_heads, num_queries, dtype=torch.float32)
    return query.new_empty(rows, num_queries, width), normaliser


def _keep_self(ctx: Any, inputs: Any, output: Any) -> None:
    projected, rotary, ctx.num_heads = inputs
    ctx.save_for_backward(projected, *output, rotary)


def _self_gradients(ctx: Any, grad_out: Tensor, _: Tensor) -> Any:
    gradient = _self_backward(grad_out.contiguous(), *ctx.saved_tensors, ctx.num_heads)
    return gradient, None, None


def _keep_asking(ctx: Any, inputs: Any, output: Any) -> None:
    query, key_value, rotary, *ctx.settings = inputs
    ctx.save_for_backward(query, key_value, *output, rotary)


def _asking_gradients(ctx: Any, grad_out: Tensor, _: Tensor) -> Any:
    gradients = _asking_backward(grad_out.contiguous(), *ctx.saved_tensors, *ctx.settings)
    return *gradients, None, None, None, None


_self.register_autograd(_self_gradients, setup_context=_keep_self)
_asking.register_autograd(_asking_gradients, setup_context=_keep_asking)
