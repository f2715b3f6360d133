"""Rows of a table chosen by tokens, with a gradient that is the same every time.

On a GPU the usual gradient adds rows with atomic operations, in no fixed order: the last bits
differ from run to run, and after some thousand steps so do the runs. As a product with one-hot
codes the sum has one order.

Letters: C tokens, D width.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def look_up(
    table_CD: Float[Tensor, "C D"], tokens: Int[Tensor, "*shape"]
) -> Float[Tensor, "*shape D"]:
    """The row of each token."""
    if table_CD.is_cuda and torch.is_grad_enabled():
        rows: Tensor = RepeatableLookup.apply(table_CD, tokens)
        return rows
    return functional.embedding(tokens, table_CD)


class RepeatableLookup(torch.autograd.Function):
    """Rows of a table by token; the gradient is a product with one-hot codes."""

    @staticmethod
    def forward(ctx: Any, table_CD: Tensor, tokens: Tensor) -> Tensor:
        """The row of each token."""
        ctx.save_for_backward(tokens)
        ctx.num_tokens = len(table_CD)
        return functional.embedding(tokens, table_CD)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Gradients of the rows, added up by token."""
        (tokens,), (grad,) = ctx.saved_tensors, gradients
        every_token_C = torch.arange(ctx.num_tokens, device=grad.device)
        is_token_NC = tokens.flatten()[:, None] == every_token_C
        return is_token_NC.to(grad.dtype).t() @ grad.flatten(end_dim=-2), None
