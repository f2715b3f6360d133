"""In-context tasks z = a·x mod p with held-out (task, input) cells: groks on a CPU.

Letters: B sequences, T examples in a sequence, A tasks, N inputs of a task.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from epigrok.config import OneParameterTask, Split
from epigrok.random_streams import choose_distinct, integers, random_bits, stream_key
from epigrok.tasks.family import Hypotheses, World, register_task
from epigrok.tasks.sequences import Batch, rows_of_examples


def sample_one_parameter_world(config: OneParameterTask, task_seed: int) -> World:
    """Tasks seen and unseen, each task's training and held-out inputs, and the answer table."""
    p, num_inputs = config.modulus, config.num_inputs
    # The identity a = 1 is always a training task. It alone answers with the input itself; a
    # network that never saw it learns that answers differ from inputs, whatever the context shows.
    others = 2 + random_bits(stream_key(task_seed, "tasks"), (num_inputs - 1,)).argsort()
    tasks = torch.cat([torch.ones(1, dtype=torch.int64), others])
    shape = (config.num_train_tasks, num_inputs)
    inputs_AN = 1 + random_bits(stream_key(task_seed, "cells"), shape).argsort(dim=1)
    residues = torch.arange(p)
    answers_PP = residues[:, None] * residues % p
    if config.random_labels:
        answers_PP = 1 + integers(stream_key(task_seed, "labels"), num_inputs, (p, p))
    num_seen, num_ood = config.num_train_tasks, config.num_ood_tasks
    return {
        "train_tasks": tasks[:num_seen].contiguous(),
        "ood_tasks": tasks[num_seen : num_seen + num_ood].contiguous(),
        "train_inputs": inputs_AN[:, : config.num_train_inputs].contiguous(),
        "val_inputs": inputs_AN[:, config.num_train_inputs :].contiguous(),
        "ood_inputs": (1 + torch.arange(num_inputs)).repeat(num_ood, 1),
        "answers": answers_PP,
    }


@register_task(OneParameterTask)
@dataclass(frozen=True)
class OneParameterFamily:
    """Batches and evaluation sequences from one world."""

    config: OneParameterTask
    world: World
    batch_size: int
    task_seed: int
    run_seed: int

    sample_world = staticmethod(sample_one_parameter_world)

    def training_batch(self, step: int | Tensor) -> Batch:
        """A random task per sequence, with inputs from that task's training cells."""
        key = stream_key(self.run_seed, "batch-tasks")
        inputs_AN = self.world["train_inputs"]
        device = inputs_AN.device
        index_B = integers(key, len(inputs_AN), (self.batch_size,), step, device)
        key = stream_key(self.run_seed, "batches")
        shape = (self.batch_size, self.config.num_examples)
        chosen_BT = choose_distinct(key, inputs_AN.shape[1], shape, step, device)
        inputs_BT = inputs_AN[index_B[:, None], chosen_BT]
        return self._batch(self.world["train_tasks"][index_B], inputs_BT)

    def evaluation_batch(self, split: Split, num_sequences: int, num_examples: int) -> Batch:
        """Sequences with every task equally often.

        A held-out cell of a training task appears only as the query; its context comes from
        training cells.
        """
        tasks_A = self.world["train_tasks" if split.tasks_seen else "ood_tasks"]
        inputs_AN = self.world["train_inputs" if split.tasks_seen else "ood_inputs"]
        asks_held_out = split.tasks_seen and not split.inputs_seen
        per_task = -(-num_sequences // len(tasks_A))
        index_B = torch.arange(len(tasks_A), device=tasks_A.device).repeat(per_task)
        shape = (len(index_B), self.config.num_examples)
        key = stream_key(self.task_seed, f"evaluation:{split.name}")
        chosen_BT = choose_distinct(key, inputs_AN.shape[1], shape, device=tasks_A.device)
        inputs_BT = inputs_AN[index_B[:, None], chosen_BT]
        if asks_held_out:
            held_out_AN = self.world["val_inputs"]
            key = stream_key(self.task_seed, "evaluation:query")
            query_B = integers(key, held_out_AN.shape[1], (len(index_B),), device=tasks_A.device)
            inputs_BT[:, -1] = held_out_AN[index_B, query_B]
        # The last examples of the full sequence, so that every length asks the same query.
        batch = self._batch(tasks_A[index_B], inputs_BT[:, shape[1] - num_examples :])
        if asks_held_out:
            batch.is_scored_BT[:, :-1] = False
        return batch

    def hypotheses(self) -> Hypotheses:
        """Multiplication by every non-zero residue, or the random tables that replace it."""
        return Hypotheses.of(self.world["answers"][1:], self.world["train_tasks"] - 1)

    def observed(self, batch: Batch) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """The input of each example, and the shown answer."""
        examples_BT2 = batch.tokens_BL.unflatten(1, (-1, 2))
        return examples_BT2[..., 0], examples_BT2[..., 1]

    def _batch(self, tasks_B: Int[Tensor, " B"], inputs_BT: Int[Tensor, "B T"]) -> Batch:
        return rows_of_examples(inputs_BT, self.world["answers"][tasks_B[:, None], inputs_BT])
