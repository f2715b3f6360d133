"""What an ideal observer would consider: every task there could be, and what each would answer.

Letters: A tasks, N inputs, B rows, T examples of a row.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from epigrok.config import OneParameterTask, TaskConfig, TwoParameterTask
from epigrok.errors import UserError
from epigrok.tasks.sequences import Batch

MAX_ANSWERS = 1 << 31
"""Entries of the largest table, 4 GiB of them."""


@dataclass(frozen=True)
class Hypotheses:
    """All tasks of a family as a table of answers."""

    answers_AN: Int[Tensor, "A N"]
    is_trained_A: Bool[Tensor, " A"]
    """Which of them training showed."""


def hypotheses(config: TaskConfig, world: dict[str, Tensor]) -> Hypotheses | None:
    """The family's tasks; None for the classic family, which has no context to infer one from."""
    p = config.modulus
    device = world[next(iter(world))].device
    residues = torch.arange(p, device=device)
    if isinstance(config, TwoParameterTask):
        if p**4 > MAX_ANSWERS:
            raise UserError(
                f"the exact predictors would need a table of {p**2} tasks x {p**2} inputs for "
                f"p = {p}; set evaluation.oracle_noise to 0 to go without them"
            )
        grids = torch.meshgrid(residues, residues, indexing="ij")
        first, second = (grid.flatten() for grid in grids)
        # Two bytes an entry, and the eight that arithmetic takes for p tasks at a time only.
        answers_AN = torch.cat(
            [((a * first + residues[:, None] * second) % p).short() for a in range(p)]
        )
        trained = world["train_tasks"]
        everything = _with_trained(answers_AN, trained[:, 0] * p + trained[:, 1])
        exists_A = (first > 0) & (second > 0) | config.allows_zero
        return Hypotheses(everything.answers_AN[exists_A], everything.is_trained_A[exists_A])
    if isinstance(config, OneParameterTask):
        answers_AN = world["answers"][1:]
        return _with_trained(answers_AN, world["train_tasks"] - 1)
    return None


def observed(config: TaskConfig, batch: Batch) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Column of each example's input in the table, and the answer shown for it."""
    examples_BTE = batch.tokens_BL.unflatten(1, (-1, config.example_length))
    inputs_BT = examples_BTE[..., 0]
    if isinstance(config, TwoParameterTask):
        inputs_BT = inputs_BT * config.modulus + examples_BTE[..., 1]
    return inputs_BT, examples_BTE[..., -1]


def _with_trained(answers_AN: Tensor, trained: Tensor) -> Hypotheses:
    is_trained_A = torch.zeros(len(answers_AN), dtype=torch.bool, device=answers_AN.device)
    is_trained_A[trained] = True
    return Hypotheses(answers_AN, is_trained_A)
