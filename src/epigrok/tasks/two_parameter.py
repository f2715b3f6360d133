"""In-context tasks z = a·x + b·y mod p: the paper's family.

Letters: B rows, T examples of a row, A tasks, Q input sequences shared by all tasks.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from epigrok.config import TwoParameterTask
from epigrok.random_streams import choose_distinct, integers, random_bits, stream_key
from epigrok.tasks.parallelogram import parallelogram_tasks
from epigrok.tasks.sequences import Batch, rows_of_examples


def sample_two_parameter_world(config: TwoParameterTask, task_seed: int) -> dict[str, Tensor]:
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


@dataclass(frozen=True)
class TwoParameterFamily:
    """Batches and evaluation rows over one sampled world."""

    config: TwoParameterTask
    world: dict[str, Tensor]
    batch_size: int
    task_seed: int
    run_seed: int

    @property
    def splits(self) -> tuple[str, ...]:
        """(tasks seen or not) x (inputs seen or not)."""
        return self.config.splits

    def training_batch(self, step: int | Tensor) -> Batch:
        """Every task equally often, on the same few input sequences or each row on its own."""
        tasks_A2, inputs_N2 = self.world["train_tasks"], self.world["train_inputs"]
        rows_per_task = self.batch_size // len(tasks_A2)
        num_sequences = rows_per_task if self.config.shares_inputs else self.batch_size
        choose = integers if self.config.repeats_inputs else choose_distinct
        chosen_QT = choose(
            stream_key(self.run_seed, "batches"),
            len(inputs_N2),
            (num_sequences, self.config.num_examples),
            step,
            inputs_N2.device,
        )
        inputs_BT2 = inputs_N2[chosen_QT].repeat_interleave(self.batch_size // num_sequences, dim=0)
        return self._rows(tasks_A2.repeat(rows_per_task, 1), inputs_BT2)

    def evaluation_batch(self, split: str, num_rows: int, num_examples: int) -> Batch:
        """Every task equally often, each row with inputs of its own."""
        tasks, inputs = split.split("_")
        tasks_A2 = self.world["train_tasks" if tasks == "id" else "ood_tasks"]
        inputs_N2 = self.world[f"{inputs}_inputs"]
        rows_per_task = -(-num_rows // len(tasks_A2))
        shape = (rows_per_task * len(tasks_A2), self.config.num_examples)
        key = stream_key(self.task_seed, f"evaluation:{split}")
        chosen_BT = choose_distinct(key, len(inputs_N2), shape, device=inputs_N2.device)
        # The last examples of the full row: whatever the length, a row asks the same query.
        inputs_BT2 = inputs_N2[chosen_BT[:, shape[1] - num_examples :]]
        return self._rows(tasks_A2.repeat(rows_per_task, 1), inputs_BT2)

    def _rows(self, tasks_B2: Int[Tensor, "B 2"], inputs_BT2: Int[Tensor, "B T 2"]) -> Batch:
        answers_BT = (inputs_BT2 * tasks_B2[:, None]).sum(dim=-1) % self.config.modulus
        return rows_of_examples(inputs_BT2[..., 0], inputs_BT2[..., 1], answers_BT)


def _pairs(index_N: Int[Tensor, " N"], modulus: int) -> Int[Tensor, "N 2"]:
    return torch.stack([index_N // modulus, index_N % modulus], dim=1)
