"""Cross-entropy of answers and its gradient, in one kernel over the logits.

Letters: M answers, P classes filled up to a power of two.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_ANSWERS = 128
"""Of a tile."""


@triton.jit
def _answer_loss(
    logits, answers, losses, gradient, num_answers, num_classes, share,
    P: tl.constexpr, ANSWERS: tl.constexpr,
):  # fmt: skip
    row, label = tl.program_id(0) * ANSWERS + tl.arange(0, ANSWERS), tl.arange(0, P)[None, :]
    is_there = row < num_answers
    place = row[:, None] * P + label
    x = tl.load(logits + place, mask=is_there[:, None], other=0.0)
    x = tl.where(label < num_classes, x, float("-inf"))
    x -= tl.max(x, axis=1)[:, None]
    powers = tl.exp(x)
    total = tl.sum(powers, axis=1)
    answer = tl.load(answers + row, mask=is_there, other=0)
    is_answer = label == answer[:, None]
    loss = tl.log(total) - tl.sum(tl.where(is_answer, x, 0.0), axis=1)
    tl.store(losses + tl.program_id(0), tl.sum(tl.where(is_there, loss, 0.0)))
    grad = (powers / total[:, None] - is_answer.to(tl.float32)) * share
    tl.store(gradient + place, grad.to(tl.bfloat16), mask=is_there[:, None])


def mean_loss_and_gradient(
    logits_MP: Tensor, answers_M: Tensor, num_classes: int
) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy over all answers, and its gradient in bfloat16."""
    num_answers, filled = logits_MP.shape
    programs = triton.cdiv(num_answers, _ANSWERS)
    losses = logits_MP.new_empty(programs)
    gradient_MP = torch.empty_like(logits_MP, dtype=torch.bfloat16)
    _answer_loss[(programs,)](
        logits_MP, answers_M, losses, gradient_MP, num_answers, num_classes, 1.0 / num_answers,
        P=filled, ANSWERS=_ANSWERS, num_warps=4,
    )  # fmt: skip
    return losses.sum() / num_answers, gradient_MP
