"""The classic family: one table c = a ∘ b mod p, some of its cells for training.

Letters: B sequences, N cells; a sequence is one example (a, b, c).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from epigrok.config import ClassicTask, Split
from epigrok.random_streams import choose_distinct, random_bits, stream_key
from epigrok.tasks.family import World, register_task
from epigrok.tasks.sequences import Batch, rows_of_examples


def sample_classic_world(config: ClassicTask, task_seed: int) -> World:
    """Training and held-out cells, each as (a, b, c)."""
    p = config.modulus
    divisors = torch.arange(1 if config.operation == "divide" else 0, p)
    a, b = torch.meshgrid(torch.arange(p), divisors, indexing="ij")
    cells_N3 = torch.stack([a, b, _result(config, a, b)], dim=-1).view(-1, 3)
    if config.random_labels:
        order = random_bits(stream_key(task_seed, "labels"), (len(cells_N3),)).argsort()
        cells_N3[:, 2] = cells_N3[order, 2]
    order = random_bits(stream_key(task_seed, "cells"), (len(cells_N3),)).argsort()
    num_train = config.num_training_points
    return {
        "id_train": cells_N3[order[:num_train]].contiguous(),
        "id_val": cells_N3[order[num_train:]].contiguous(),
    }


@register_task(ClassicTask)
@dataclass(frozen=True)
class ClassicFamily:
    """Batches and evaluation sequences from one table."""

    config: ClassicTask
    world: World
    batch_size: int
    task_seed: int
    run_seed: int

    sample_world = staticmethod(sample_classic_world)

    def training_batch(self, step: int | Tensor) -> Batch:
        """Distinct training cells, drawn anew at every step."""
        cells_N3 = self.world["id_train"]
        key = stream_key(self.run_seed, "batches")
        chosen_1B = choose_distinct(key, len(cells_N3), (1, self.batch_size), step, cells_N3.device)
        return _batch(cells_N3[chosen_1B[0]])

    def evaluation_batch(self, split: Split, num_sequences: int, num_examples: int) -> Batch:
        """All cells of the split; a table is small enough for that."""
        del num_sequences, num_examples
        return _batch(self.world[split.name])


def _batch(cells_B3: Int[Tensor, "B 3"]) -> Batch:
    return rows_of_examples(cells_B3[:, :1], cells_B3[:, 1:2], cells_B3[:, 2:])


def _result(config: ClassicTask, a: Tensor, b: Tensor) -> Tensor:
    p = config.modulus
    match config.operation:
        case "add":
            return (a + b) % p
        case "subtract":
            return (a - b) % p
        case "multiply":
            return (a * b) % p
        case "divide":
            inverses = torch.tensor([0] + [pow(k, -1, p) for k in range(1, p)])
            return (a * inverses[b]) % p
        case "quadratic":
            return (a * a + a * b + b * b) % p
