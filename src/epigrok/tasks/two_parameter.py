"""In-context tasks z = a·x + b·y mod p: the paper's family.

Letters: B sequences, T examples in a sequence, A tasks, Q input sequences shared by all tasks.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from epigrok.config import Split, TwoParameterTask
from epigrok.errors import UserError
from epigrok.random_streams import choose_distinct, integers, random_bits, stream_key
from epigrok.tasks.family import Hypotheses, World, register_task
from epigrok.tasks.parallelogram import parallelogram_tasks
from epigrok.tasks.sequences import Batch, rows_of_examples

MAX_ANSWERS = 1 << 31
"""Largest number of entries in a table of hypotheses: 4 GiB."""


def sample_two_parameter_world(config: TwoParameterTask, task_seed: int) -> World:
    """Which tasks and inputs exist: (a, b) and (x, y) pairs, seen and unseen."""
    p = config.modulus
    shuffled_tasks = random_bits(stream_key(task_seed, "tasks"), (p * p,)).argsort()
    if not config.allows_zero:
        has_no_zero = (shuffled_tasks >= p) & (shuffled_tasks % p > 0)
        shuffled_tasks = shuffled_tasks[has_no_zero]
    if config.construction == "parallelogram":
        train_tasks = torch.from_numpy(
            parallelogram_tasks(p, config.num_base_tasks, task_seed, config.allows_zero)
        )
    else:
        train_tasks = _pairs(shuffled_tasks[: config.num_train_tasks], p)
    is_seen = torch.isin(shuffled_tasks, train_tasks[:, 0] * p + train_tasks[:, 1])
    ood_tasks = _pairs(shuffled_tasks[~is_seen][: config.num_ood_tasks], p)
    inputs = _pairs(random_bits(stream_key(task_seed, "inputs"), (p * p,)).argsort(), p)
    return {
        "train_tasks": train_tasks,
        "ood_tasks": ood_tasks,
        "train_inputs": inputs[: config.num_train_inputs].contiguous(),
        "val_inputs": inputs[config.num_train_inputs :].contiguous(),
    }


@register_task(TwoParameterTask)
@dataclass(frozen=True)
class TwoParameterFamily:
    """Batches and evaluation sequences from one world."""

    config: TwoParameterTask
    world: World
    batch_size: int
    task_seed: int
    run_seed: int

    sample_world = staticmethod(sample_two_parameter_world)

    def training_batch(self, step: int | Tensor) -> Batch:
        """Every task equally often; tasks share their inputs, or each sequence draws its own."""
        tasks_A2, inputs_N2 = self.world["train_tasks"], self.world["train_inputs"]
        per_task = self.batch_size // len(tasks_A2)
        num_sequences = per_task if self.config.shares_inputs else self.batch_size
        choose = integers if self.config.repeats_inputs else choose_distinct
        chosen_QT = choose(
            stream_key(self.run_seed, "batches"),
            len(inputs_N2),
            (num_sequences, self.config.num_examples),
            step,
            inputs_N2.device,
        )
        inputs_BT2 = inputs_N2[chosen_QT].repeat_interleave(self.batch_size // num_sequences, dim=0)
        return self._batch(tasks_A2.repeat(per_task, 1), inputs_BT2)

    def evaluation_batch(self, split: Split, num_sequences: int, num_examples: int) -> Batch:
        """Every task equally often; each sequence draws its own inputs."""
        tasks_A2 = self.world["train_tasks" if split.tasks_seen else "ood_tasks"]
        inputs_N2 = self.world["train_inputs" if split.inputs_seen else "val_inputs"]
        per_task = -(-num_sequences // len(tasks_A2))
        shape = (per_task * len(tasks_A2), self.config.num_examples)
        key = stream_key(self.task_seed, f"evaluation:{split.name}")
        chosen_BT = choose_distinct(key, len(inputs_N2), shape, device=inputs_N2.device)
        # The last examples of the full sequence, so that every length asks the same query.
        inputs_BT2 = inputs_N2[chosen_BT[:, shape[1] - num_examples :]]
        return self._batch(tasks_A2.repeat(per_task, 1), inputs_BT2)

    def hypotheses(self) -> Hypotheses:
        """All pairs (a, b), each with its answer to all pairs (x, y)."""
        p = self.config.modulus
        if p**4 > MAX_ANSWERS:
            raise UserError(
                f"the exact predictors would need a table of {p**2} tasks x {p**2} inputs for "
                f"p = {p}; set evaluation.oracle_noise to 0 to go without them"
            )
        trained_A2 = self.world["train_tasks"]
        residues = torch.arange(p, device=trained_A2.device)
        grids = torch.meshgrid(residues, residues, indexing="ij")
        first, second = (grid.flatten() for grid in grids)
        # Two bytes per entry. Arithmetic takes eight, so it handles p tasks at a time.
        answers_AN = torch.cat(
            [((a * first + residues[:, None] * second) % p).short() for a in range(p)]
        )
        everything = Hypotheses.of(answers_AN, trained_A2[:, 0] * p + trained_A2[:, 1])
        exists_A = (first > 0) & (second > 0) | self.config.allows_zero
        return Hypotheses(everything.answers_AN[exists_A], everything.is_trained_A[exists_A])

    def observed(self, batch: Batch) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """The index of each input (x, y) among all pairs, and the shown answer."""
        examples_BT3 = batch.tokens_BL.unflatten(1, (-1, 3))
        inputs_BT = examples_BT3[..., 0] * self.config.modulus + examples_BT3[..., 1]
        return inputs_BT, examples_BT3[..., 2]

    def _batch(self, tasks_B2: Int[Tensor, "B 2"], inputs_BT2: Int[Tensor, "B T 2"]) -> Batch:
        answers_BT = (inputs_BT2 * tasks_B2[:, None]).sum(dim=-1) % self.config.modulus
        return rows_of_examples(inputs_BT2[..., 0], inputs_BT2[..., 1], answers_BT)


def _pairs(index_N: Int[Tensor, " N"], modulus: int) -> Int[Tensor, "N 2"]:
    return torch.stack([index_N // modulus, index_N % modulus], dim=1)
