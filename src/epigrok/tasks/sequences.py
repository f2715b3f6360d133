"""Sequences of tokens with their answers, and noise in their contexts.

A sequence is `num_examples` examples of `example_length` tokens; the last token of an example is
its answer. This layout alone decides which positions are answers, never the values.

Letters: B sequences, L tokens, T examples (and so answers) in a sequence.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from epigrok.random_streams import integers, stream_key, uniform


@dataclass(frozen=True)
class Batch:
    """Sequences to learn from or to score."""

    tokens_BL: Int[Tensor, "B L"]
    answers_BT: Int[Tensor, "B T"]
    is_scored_BT: Bool[Tensor, "B T"]
    """Which answers are scored; the others are only context."""


def rows_of_examples(*columns_BT: Int[Tensor, "B T"]) -> Batch:
    """Interleave the tokens of examples, answers last: x1 y1 z1 x2 y2 z2 and so on."""
    tokens_BL = torch.stack(columns_BT, dim=-1).flatten(start_dim=1)
    answers_BT = columns_BT[-1]
    return Batch(tokens_BL, answers_BT, torch.ones_like(answers_BT, dtype=torch.bool))


def with_context_noise(batch: Batch, noise: float, vocabulary_size: int, task_seed: int) -> Batch:
    """Replace each context answer, with probability `noise`, by a uniform token.

    Inputs, the last example and the answers to score stay clean. All noise levels share their
    random numbers: a token corrupted at 0.1 is corrupted in the same way at 0.2.
    """
    shape = (batch.answers_BT.shape[0], batch.answers_BT.shape[1])
    device = batch.tokens_BL.device
    is_corrupted_BT = uniform(stream_key(task_seed, "noise-where"), shape, device=device) < noise
    is_corrupted_BT[:, -1] = False
    replacement_BT = integers(
        stream_key(task_seed, "noise-what"), vocabulary_size, shape, device=device
    )
    example_length = batch.tokens_BL.shape[1] // shape[1]
    tokens_BL = batch.tokens_BL.clone()
    shown_BT = tokens_BL[:, example_length - 1 :: example_length]
    shown_BT.copy_(torch.where(is_corrupted_BT, replacement_BT, shown_BT))
    return Batch(tokens_BL, batch.answers_BT, batch.is_scored_BT)
