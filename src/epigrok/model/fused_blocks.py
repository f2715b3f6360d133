"""The blocks of a transformer forward and backward in bfloat16, on a GPU.

Every pass forward returns its result and its backward pass: a function that takes the gradient of
the result, writes down the gradients of the weights, and returns the gradient of what came in.
Matrices come in bfloat16; their gradients are float32.

Letters: N positions of all sequences, M those of them that ask, D width, E = 3D queries, keys and
values, F feed-forward width, C tokens, P the same filled up to a power of two.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from epigrok.model.kernels.attention import EVERYWHERE, Asking, attend_forward
from epigrok.model.kernels.attention_backward import attend_backward
from epigrok.model.kernels.feedforward import feedforward_backward, feedforward_forward
from epigrok.model.kernels.norm import (
    NUM_SHARES,
    Normed,
    Picked,
    add_and_norm,
    gradient_of_stream,
)
from epigrok.model.kernels.token_sums import sums_by_token
from epigrok.model.transformer import Block

Back = Callable[[Tensor], Tensor]


class Gradients:
    """The gradients of the weights as they are found; those of norms come in shares first."""

    def __init__(self, num_norms: int, like: Tensor) -> None:
        self.of: dict[Tensor, Tensor] = {}
        self._norms: list[nn.LayerNorm] = []
        self._shares = like.new_empty(num_norms, NUM_SHARES, 2, like.shape[-1])

    def shares_of(self, norm: nn.LayerNorm) -> Tensor:
        """Where the backward pass of `norm` leaves its shares."""
        self._norms.append(norm)
        return self._shares[len(self._norms) - 1]

    def add_up_norms(self) -> None:
        """Sum the shares of all norms at once."""
        for norm, (gain, bias) in zip(self._norms, self._shares.sum(dim=1)):
            self.of[norm.weight], self.of[norm.bias] = gain, bias


class BatchLayout(NamedTuple):
    """The tokens of a batch's sequences, and which of their positions ask."""

    tokens_N: Tensor
    number: int
    length: int
    num_asking: int
    asking: Asking
    rotary: Tensor
    """Cosines and sines in half precision."""


class BlockMatrices(NamedTuple):
    """The matrices of a block in bfloat16."""

    into_attention_ED: Tensor
    out_of_attention_DD: Tensor
    into_feedforward_FD: Tensor
    out_of_feedforward_DF: Tensor


class BlockPass:
    """One block on one batch."""

    def __init__(
        self, block: Block, half: BlockMatrices, layout: BatchLayout, gradients: Gradients
    ) -> None:
        self._block, self._half, self._layout, self._gradients = block, half, layout, gradients

    def first(self, embedding_CD: Tensor) -> tuple[Tensor, Tensor, Back]:
        """The first block, which sees nothing but tokens: its projections are looked up.

        Returns:
            The stream before the feed-forward, what that adds to it, and the backward pass, which
            gives the gradient of the embedding for P tokens.
        """
        block, half, tokens_N = self._block, self._half, self._layout.tokens_N
        num_tokens = len(embedding_CD)
        of_tokens = self._norm(block.attention_norm, embedding_CD, None)
        table_CE = of_tokens.normed @ half.into_attention_ED.t()
        attended_ND, from_attended = self._attend(table_CE.chunk(3, dim=1), EVERYWHERE, tokens_N)
        update_ND, from_update = self._out_of_attention(attended_ND)
        second = self._norm(block.feedforward_norm, embedding_CD, update_ND, tokens_N)
        out_ND, from_out = self._feedforward(second.normed)

        def back(grad_ND: Tensor) -> Tensor:
            grad_ND = self._from_norm(block.feedforward_norm, second, from_out(grad_ND), grad_ND)
            grad_NE = from_attended(from_update(grad_ND))
            filled = filled_up(num_tokens)
            grad_PD = sums_by_token(grad_ND, tokens_N, filled)
            grad_CE = sums_by_token(grad_NE, tokens_N, filled)[:num_tokens].bfloat16()
            grad_CD = self._from_projections(grad_CE, of_tokens.normed)
            grad_PD[:num_tokens] += self._from_norm(block.attention_norm, of_tokens, grad_CD, None)
            return grad_PD

        return second.stream, out_ND, back

    def middle(self, stream_ND: Tensor, update_ND: Tensor) -> tuple[Tensor, Tensor, Back]:
        """A block at all positions; takes and gives the stream and what is still to be added."""
        block = self._block
        first = self._norm(block.attention_norm, stream_ND, update_ND)
        projected_NE = first.normed @ self._half.into_attention_ED.t()
        attended_ND, from_attended = self._attend(projected_NE.chunk(3, dim=1), EVERYWHERE)
        update_ND, from_update = self._out_of_attention(attended_ND)
        second = self._norm(block.feedforward_norm, first.stream, update_ND)
        out_ND, from_out = self._feedforward(second.normed)

        def back(grad_ND: Tensor) -> Tensor:
            grad_ND = self._from_norm(block.feedforward_norm, second, from_out(grad_ND), grad_ND)
            grad_NE = from_attended(from_update(grad_ND))
            grad_normed_ND = self._from_projections(grad_NE, first.normed)
            return self._from_norm(block.attention_norm, first, grad_normed_ND, grad_ND)

        return second.stream, out_ND, back

    def last(self, stream_ND: Tensor, update_ND: Tensor) -> tuple[Tensor, Tensor, Back]:
        """The block that is read where something is asked: the rest only has keys and values."""
        block, layout, width = self._block, self._layout, stream_ND.shape[1]
        into_query_DD, into_key_value = self._half.into_attention_ED.split([width, 2 * width])
        picked = Picked(layout.length, layout.num_asking, *layout.asking)
        first = self._norm(block.attention_norm, stream_ND, update_ND)
        asking = slice(layout.asking.first, None, layout.asking.step)
        normed_MD = first.normed.view(layout.number, layout.length, width)[:, asking].reshape(
            -1, width
        )
        query_MD, key_value = normed_MD @ into_query_DD.t(), first.normed @ into_key_value.t()
        inputs = (query_MD, *key_value.chunk(2, dim=1))
        attended_MD, from_attended = self._attend(inputs, layout.asking)
        update_MD, from_update = self._out_of_attention(attended_MD)
        second = add_and_norm(
            first.stream, update_MD, *_weights(block.feedforward_norm), picked=picked
        )
        out_MD, from_out = self._feedforward(second.normed)

        def back(grad_MD: Tensor) -> Tensor:
            grad_MD = self._from_norm(block.feedforward_norm, second, from_out(grad_MD), grad_MD)
            grad_query_MD, grad_key_value = from_attended(from_update(grad_MD))
            self._gradients.of[block.query.weight] = wide_product(grad_query_MD.t(), normed_MD)
            self._gradients.of[block.key_value.weight] = wide_product(
                grad_key_value.t(), first.normed
            )
            return self._from_norm(
                block.attention_norm,
                first,
                grad_key_value @ into_key_value,
                grad_MD,
                grad_query_MD @ into_query_DD,
                picked,
            )

        return second.stream, out_MD, back

    def _attend(
        self, inputs: tuple[Tensor, ...], asking: Asking, tokens_N: Tensor | None = None
    ) -> tuple[Tensor, Callable[[Tensor], Any]]:
        layout, num_heads = self._layout, self._block.num_heads
        is_everywhere = asking == EVERYWHERE
        num_queries = layout.length if is_everywhere else layout.num_asking
        shape = (layout.number, num_queries, layout.length)
        out, normaliser = attend_forward(inputs, tokens_N, layout.rotary, num_heads, shape, asking)

        def back(grad_out: Tensor) -> Tensor | tuple[Tensor, Tensor]:
            width = out.shape[1]
            saved = (out, normaliser, grad_out)
            if is_everywhere:
                grad_NE = out.new_empty(len(out), 3 * width)
                gradient, parts = grad_NE, grad_NE.chunk(3, dim=1)
            else:
                grad_query = torch.empty_like(out)
                grad_key_value = out.new_empty(layout.number * layout.length, 2 * width)
                gradient = (grad_query, grad_key_value)
                parts = (grad_query, *grad_key_value.chunk(2, dim=1))
            attend_backward(inputs, tokens_N, saved, parts, layout.rotary, num_heads, shape, asking)
            return gradient

        return out, back

    def _out_of_attention(self, attended: Tensor) -> tuple[Tensor, Back]:
        weights = self._half.out_of_attention_DD

        def back(grad: Tensor) -> Tensor:
            self._gradients.of[self._block.attention_out.weight] = wide_product(grad.t(), attended)
            return grad @ weights

        return attended @ weights.t(), back

    def _from_projections(self, grad: Tensor, normed: Tensor) -> Tensor:
        weights, block, width = self._half.into_attention_ED, self._block, normed.shape[1]
        of_weights = wide_product(grad.t(), normed).split([width, 2 * width])
        self._gradients.of[block.query.weight], self._gradients.of[block.key_value.weight] = (
            of_weights
        )
        return grad @ weights

    def _feedforward(self, normed: Tensor) -> tuple[Tensor, Back]:
        weights = self._half.into_feedforward_FD, self._half.out_of_feedforward_DF
        inner, out = feedforward_forward(normed, *weights)

        def back(grad: Tensor) -> Tensor:
            grad_inner, grad_normed = feedforward_backward(grad, *weights, inner)
            block = self._block
            self._gradients.of[block.feedforward_out.weight] = wide_product(grad.t(), inner)
            self._gradients.of[block.feedforward_in.weight] = wide_product(grad_inner.t(), normed)
            return grad_normed

        return out, back

    def _norm(
        self,
        norm: nn.LayerNorm,
        stream: Tensor,
        update: Tensor | None,
        tokens: Tensor | None = None,
    ) -> Normed:
        return add_and_norm(stream, update, *_weights(norm), tokens)

    def _from_norm(
        self,
        norm: nn.LayerNorm,
        kept: Normed,
        grad_normed: Tensor,
        grad_stream: Tensor | None,
        *at_picked: Any,
    ) -> Tensor:
        shares = self._gradients.shares_of(norm)
        return gradient_of_stream(kept, norm.weight, shares, grad_normed, grad_stream, *at_picked)


def wide_product(left: Tensor, right: Tensor) -> Tensor:
    """The product of two bfloat16 matrices in float32."""
    return torch.mm(left, right, out_dtype=torch.float32)


def filled_up(num_tokens: int) -> int:
    """Rows of a table of tokens, filled up to a power of two that matrix units take."""
    return max(16, 1 << (num_tokens - 1).bit_length())


def _weights(norm: nn.LayerNorm) -> tuple[Tensor, Tensor]:
    return norm.weight, norm.bias
