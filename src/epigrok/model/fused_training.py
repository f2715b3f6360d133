"""Loss and gradients of a transformer in bfloat16, kernel by kernel, on a GPU.

The same network as `Transformer.forward` under autocast, with its backward pass written out. What
goes from kernel to kernel is bfloat16, the residual stream and the gradients of the weights are
float32. All sums run in one order, so that the same weights and batch give the same bits.

Letters: B sequences, L tokens and T answers of each, M answers of all, D width, C tokens, P the
same filled up to a power of two.
"""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from epigrok.model.transformer import Block, Transformer

if TYPE_CHECKING:
    from epigrok.model.fused_blocks import BatchLayout, BlockMatrices

HEAD_WIDTHS = (32, 64, 128)
WIDTHS = (64, 128, 256, 512, 1024)
MAX_LENGTH = MAX_TOKENS = 128


def fits_kernels(model: nn.Module, batch_size: int) -> bool:
    """Whether the kernels are made for this network and batch, and this is a GPU they run on.

    Sequences and heads are one axis of a grid, which is limited, and places are counted in 32 bits.
    """
    # A network derived from it may compute something else.
    if type(model) is not Transformer:
        return False
    weights, block = model.embedding.weight, model.blocks[0]
    assert isinstance(block, Block)
    (num_tokens, width), inner_width = weights.shape, block.feedforward_in.weight.shape[0]
    length = model.get_buffer("rotary").shape[1]
    return (
        weights.is_cuda
        and torch.cuda.get_device_capability(weights.device) >= (8, 0)
        and weights.dtype == torch.float32
        and len(model.blocks) > 1
        and length <= MAX_LENGTH
        and num_tokens <= MAX_TOKENS
        and width in WIDTHS
        and width // block.num_heads in HEAD_WIDTHS
        and inner_width % 128 == 0
        and batch_size * block.num_heads < 2**16
        and batch_size * length * max(3 * width, inner_width) < 2**31
    )


def loss_and_gradients(
    model: Transformer, tokens_BL: Int[Tensor, "B L"], answers_BT: Int[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """The mean cross-entropy over all answers; its gradients become those of the parameters."""
    # Imported here, because only machines with a GPU have these kernels.
    from epigrok.model.fused_blocks import BatchLayout
    from epigrok.model.kernels.attention import Asking

    # Nothing is predicted from the last answer, so it is not computed.
    tokens_BL = tokens_BL[:, :-1]
    number, length = tokens_BL.shape
    layout = BatchLayout(
        tokens_BL.to(torch.int32).flatten(),
        number,
        length,
        answers_BT.shape[1],
        Asking(model.example_length - 2, model.example_length),
        # What is turned is rounded to the 8 bits of bfloat16; these tables keep 11.
        model.get_buffer("rotary").to(torch.float16),
    )
    with torch.no_grad():
        loss, gradients = _pass(model, layout, answers_BT.flatten())
        _assign(gradients)
    return loss


def _pass(
    model: Transformer, layout: "BatchLayout", answers_M: Int[Tensor, " M"]
) -> tuple[Tensor, dict[Tensor, Tensor]]:
    from epigrok.model.fused_blocks import BlockPass, Gradients, wide_product
    from epigrok.model.kernels.answer_loss import mean_loss_and_gradient
    from epigrok.model.kernels.norm import add_and_norm, gradient_of_stream

    embedding_CD = model.embedding.weight
    embedding_PD, halves = _half_precision(model)
    gradients = Gradients(2 * len(model.blocks) + 1, embedding_CD)
    passes = [
        BlockPass(block, half, layout, gradients)
        for block, half in zip(model.blocks, halves)
        if isinstance(block, Block)
    ]
    stream, update, back = passes[0].first(embedding_CD)
    ways_back = [back]
    for one in passes[1:-1]:
        stream, update, back = one.middle(stream, update)
        ways_back.append(back)
    stream, update, back = passes[-1].last(stream, update)
    ways_back.append(back)
    final = add_and_norm(stream, update, model.norm.weight, model.norm.bias)
    logits_MP = wide_product(final.normed, embedding_PD.t())
    loss, grad_MP = mean_loss_and_gradient(logits_MP, answers_M, len(embedding_CD))

    of_head_PD = wide_product(grad_MP.t(), final.normed)
    shares = gradients.shares_of(model.norm)
    grad = gradient_of_stream(final, model.norm.weight, shares, grad_MP @ embedding_PD)
    while ways_back:
        grad = ways_back.pop()(grad)
    gradients.of[embedding_CD] = (grad + of_head_PD)[: len(embedding_CD)]
    gradients.add_up_norms()
    return loss, gradients.of


def _half_precision(model: Transformer) -> "tuple[Tensor, list[BlockMatrices]]":
    """The embedding, filled up with zeros, and the matrices of each block, in bfloat16."""
    from epigrok.model.fused_blocks import BlockMatrices, filled_up

    embedding_CD = model.embedding.weight
    num_tokens, width = embedding_CD.shape
    embedding_PD = embedding_CD.new_zeros(filled_up(num_tokens), width, dtype=torch.bfloat16)
    targets, sources, halves = [embedding_PD[:num_tokens]], [embedding_CD], []
    for block in model.blocks:
        assert isinstance(block, Block)
        inner_width = len(block.feedforward_in.weight)
        half = BlockMatrices(
            embedding_PD.new_empty(3 * width, width),
            embedding_PD.new_empty(width, width),
            embedding_PD.new_empty(inner_width, width),
            embedding_PD.new_empty(width, inner_width),
        )
        halves.append(half)
        targets += [*half.into_attention_ED.split([width, 2 * width]), *half[1:]]
        sources += [block.query.weight, block.key_value.weight, block.attention_out.weight]
        sources += [block.feedforward_in.weight, block.feedforward_out.weight]
    # One kernel for all of them.
    torch._foreach_copy_(targets, sources)
    return embedding_PD, halves


def _assign(gradients: dict[Tensor, Tensor]) -> None:
    """Set the gradients; those that are views into an optimiser's buffer are filled in place."""
    kept, new = [], []
    for parameter, gradient in gradients.items():
        if parameter.grad is None:
            parameter.grad = gradient
        else:
            kept.append(parameter.grad)
            new.append(gradient)
    if kept:
        torch._foreach_copy_(kept, new)
