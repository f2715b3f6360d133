"""Causal attention with full rotary encoding, at all positions or only where answers are asked.

Letters: B rows, L tokens, T positions that ask, D width, H heads, K head width, W window.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

ROTARY_BASE = 10_000.0


def self_attention(
    projected_BLE: Float[Tensor, "B L E"], rotary: Float[Tensor, "2 W K"], num_heads: int
) -> Float[Tensor, "B L D"]:
    """What every position reads; `projected_BLE` holds its query, key and value (E = 3D)."""
    if _fits_kernel(projected_BLE, projected_BLE.shape[-1] // 3 // num_heads, num_heads):
        from epigrok.model import fused_attention

        return fused_attention.self_attention(projected_BLE, _half(rotary), num_heads)
    rotary = rotary[:, : projected_BLE.shape[1]]
    query, key, value = (_by_head(part, num_heads) for part in projected_BLE.chunk(3, dim=-1))
    attended_BHLK = functional.scaled_dot_product_attention(
        rotate(query, rotary), rotate(key, rotary), value, is_causal=True
    )
    return attended_BHLK.transpose(1, 2).flatten(start_dim=2)


def asking_attention(
    query_BTD: Float[Tensor, "B T D"],
    key_value_BLE: Float[Tensor, "B L E"],
    rotary: Float[Tensor, "2 W K"],
    num_heads: int,
    asking: slice,
) -> Float[Tensor, "B T D"]:
    """What the positions `asking` read; `key_value_BLE` holds everybody's key and value."""
    if _fits_kernel(key_value_BLE, query_BTD.shape[-1] // num_heads, num_heads):
        from epigrok.model import fused_attention

        return fused_attention.asking_attention(
            query_BTD, key_value_BLE, _half(rotary), num_heads, asking
        )
    rotary = rotary[:, : key_value_BLE.shape[1]]
    key, value = (_by_head(part, num_heads) for part in key_value_BLE.chunk(2, dim=-1))
    position = torch.arange(key.shape[2], device=key.device)
    may_see_TL = position[asking, None] >= position
    attended_BHTK = functional.scaled_dot_product_attention(
        rotate(_by_head(query_BTD, num_heads), rotary[:, asking]),
        rotate(key, rotary),
        value,
        attn_mask=may_see_TL,
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
    # In the tables' precision: bfloat16 angles would make positions differ by more than turns do.
    turned = x_BHLK * cosines + torch.cat([-second, first], dim=-1) * sines
    return turned.to(x_BHLK.dtype)


def _by_head(x_BLD: Float[Tensor, "B L D"], num_heads: int) -> Float[Tensor, "B H L K"]:
    return x_BLD.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _half(rotary: Float[Tensor, "2 W K"]) -> Float[Tensor, "2 W K"]:
    # What is turned is rounded to the 8 bits of bfloat16; these tables keep 11 and load faster.
    return rotary.to(torch.float16)


def _fits_kernel(projected_BLE: Tensor, head_width: int, num_heads: int) -> bool:
    """Whether the fused GPU kernel is made for this: training precision, a short window.

    Rows are one axis of its grid, which is limited, and places are counted in 32 bits.
    """
    return (
        projected_BLE.is_cuda
        and projected_BLE.shape[0] * num_heads < 2**16
        and projected_BLE.numel() < 2**31
        and projected_BLE.dtype == torch.bfloat16
        and projected_BLE.shape[1] <= 128
        and head_width in (32, 64, 128)
    )
