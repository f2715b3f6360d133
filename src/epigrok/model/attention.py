"""Causal attention with full rotary encoding, at all positions or only at those that ask.

Letters: B sequences, L tokens, T positions that ask, D width, H heads, K head width, W window.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

ROTARY_BASE = 10_000.0


def self_attention(
    projected_BLE: Float[Tensor, "B L E"], rotary: Float[Tensor, "2 W K"], num_heads: int
) -> Float[Tensor, "B L D"]:
    """The output of every position; `projected_BLE` holds its query, key and value (E = 3D)."""
    if _fits_kernel(projected_BLE, projected_BLE.shape[-1] // 3 // num_heads, num_heads):
        from epigrok.model.kernels.attention import EVERYWHERE, attend_forward

        (rows, length, _), inputs = projected_BLE.shape, projected_BLE.flatten(0, 1).chunk(3, dim=1)
        shape = (rows, length, length)
        return attend_forward(inputs, None, rotary, num_heads, shape, EVERYWHERE)[0].unflatten(
            0, (rows, length)
        )
    rotary = rotary[:, : projected_BLE.shape[1]]
    query, key, value = (_by_head(part, num_heads) for part in projected_BLE.chunk(3, dim=-1))
    query, key = rotate(query, rotary), rotate(key, rotary)
    if _must_be_repeatable(query):
        position = torch.arange(query.shape[2], device=query.device)
        attended_BHLK = _attention_by_products(query, key, value, position[:, None] >= position)
    else:
        attended_BHLK = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return attended_BHLK.transpose(1, 2).flatten(start_dim=2)


def asking_attention(
    query_BTD: Float[Tensor, "B T D"],
    key_value_BLE: Float[Tensor, "B L E"],
    rotary: Float[Tensor, "2 W K"],
    num_heads: int,
    asking: slice,
) -> Float[Tensor, "B T D"]:
    """The output of the positions `asking`; `key_value_BLE` has keys and values of all."""
    if _fits_kernel(key_value_BLE, query_BTD.shape[-1] // num_heads, num_heads):
        from epigrok.model.kernels.attention import Asking, attend_forward

        rows, num_queries, _ = query_BTD.shape
        shape = (rows, num_queries, key_value_BLE.shape[1])
        inputs = (query_BTD.flatten(0, 1), *key_value_BLE.flatten(0, 1).chunk(2, dim=1))
        positions = Asking(asking.start, asking.step)
        return attend_forward(inputs, None, rotary, num_heads, shape, positions)[0].unflatten(
            0, (rows, num_queries)
        )
    rotary = rotary[:, : key_value_BLE.shape[1]]
    key, value = (_by_head(part, num_heads) for part in key_value_BLE.chunk(2, dim=-1))
    position = torch.arange(key.shape[2], device=key.device)
    may_see_TL = position[asking, None] >= position
    query = rotate(_by_head(query_BTD, num_heads), rotary[:, asking])
    key = rotate(key, rotary)
    if _must_be_repeatable(query):
        attended_BHTK = _attention_by_products(query, key, value, may_see_TL)
    else:
        attended_BHTK = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=may_see_TL
        )
    return attended_BHTK.transpose(1, 2).flatten(start_dim=2)


def rotary_tables(window: int, head_width: int) -> Float[Tensor, "2 W K"]:
    """Cosines and sines of position times frequency, for both halves of a head."""
    exponent = torch.arange(0, head_width, 2, dtype=torch.float64) / head_width
    angle = torch.arange(window, dtype=torch.float64)[:, None] * ROTARY_BASE**-exponent
    angle = torch.cat([angle, angle], dim=-1)
    return torch.stack([angle.cos(), angle.sin()]).to(torch.get_default_dtype())


def rotate(x_BHLK: Float[Tensor, "B H L K"], rotary: Float[Tensor, "2 L K"]) -> Tensor:
    """Turn each channel pair (i, i + K/2) by its position's angle."""
    first, second = x_BHLK.chunk(2, dim=-1)
    cosines, sines = rotary
    # In the tables' precision: rounding to bfloat16 would exceed the turn between positions.
    turned = x_BHLK * cosines + torch.cat([-second, first], dim=-1) * sines
    return turned.to(x_BHLK.dtype)


def _by_head(x_BLD: Float[Tensor, "B L D"], num_heads: int) -> Float[Tensor, "B H L K"]:
    return x_BLD.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _fits_kernel(projected_BLE: Tensor, head_width: int, num_heads: int) -> bool:
    """Whether the GPU kernel can do this: no gradients, single precision, a short window.

    Sequences and heads are one axis of its grid, which is limited, and offsets have 32 bits.
    """
    return (
        projected_BLE.is_cuda
        and not torch.is_grad_enabled()
        and projected_BLE.dtype == torch.float32
        and projected_BLE.shape[0] * num_heads < 2**16
        and projected_BLE.numel() < 2**31
        and head_width in (32, 64, 128)
    )


def _must_be_repeatable(query_BHTK: Tensor) -> bool:
    """Whether gradients will be taken on a GPU, where torch's own sums have no fixed order."""
    return query_BHTK.is_cuda and torch.is_grad_enabled()


def _attention_by_products(
    query_BHTK: Float[Tensor, "B H T K"],
    key_BHLK: Float[Tensor, "B H L K"],
    value_BHLK: Float[Tensor, "B H L K"],
    may_see_TL: Bool[Tensor, "T L"],
) -> Float[Tensor, "B H T K"]:
    scores_BHTL = query_BHTK @ key_BHLK.mT * query_BHTK.shape[-1] ** -0.5
    return scores_BHTL.masked_fill(~may_see_TL, -torch.inf).softmax(dim=-1) @ value_BHLK
