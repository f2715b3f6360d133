"""A task of your own, in one file: z = a·x² + b mod p, with the task (a, b) hidden in the context.

    epigrok train own-task --plugin examples/own_task.py --out runs/own-task
    epigrok evaluate runs/own-task --series context-length --plugin examples/own_task.py
    epigrok report runs/own-task

The settings say what a sequence looks like, the family makes sequences, and the preset is a recipe
to start from. Training, evaluation, sweeps, figures and report need nothing else.

Letters: B sequences, T examples of a sequence, A tasks, N inputs.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

import epigrok
from epigrok.config import Split, TaskConfig
from epigrok.config.splits import ID_TRAIN, ID_VAL, OOD_VAL
from epigrok.random_streams import choose_distinct, integers, random_bits, stream_key
from epigrok.tasks import Batch, Hypotheses, World, rows_of_examples


@dataclass(frozen=True, kw_only=True)
class SquareTask(TaskConfig):
    """In context: pairs (x, z) with z = a·x² + b mod p; the task (a, b) is never shown."""

    modulus: int = 13
    num_train_tasks: int = 120
    """Of the p·(p - 1) tasks with a ≠ 0; the others are unseen."""
    num_train_inputs: int = 10
    """Of the p inputs; queries with the others are unseen."""
    num_examples: int = 6

    @property
    def example_length(self) -> int:
        """Tokens of one example: x, z."""
        return 2

    @property
    def vocabulary_size(self) -> int:
        """Residues."""
        return self.modulus

    @property
    def splits(self) -> tuple[Split, ...]:
        """Seen tasks on seen and unseen queries, and unseen tasks."""
        return (ID_TRAIN, ID_VAL, OOD_VAL)

    @property
    def num_training_points(self) -> int:
        """Distinct (task, input) cells of the training set."""
        return self.num_train_tasks * self.num_train_inputs


@epigrok.register_task(SquareTask)
@dataclass(frozen=True)
class SquareFamily:
    """Sequences over one world."""

    config: SquareTask
    world: World
    batch_size: int
    task_seed: int
    run_seed: int

    @staticmethod
    def sample_world(config: SquareTask, task_seed: int) -> World:
        """Which tasks and inputs training shows."""
        p = config.modulus
        shuffled = p + random_bits(stream_key(task_seed, "tasks"), (p * (p - 1),)).argsort()
        inputs = random_bits(stream_key(task_seed, "inputs"), (p,)).argsort()
        return {
            "train_tasks": shuffled[: config.num_train_tasks].contiguous(),
            "ood_tasks": shuffled[config.num_train_tasks :].contiguous(),
            "train_inputs": inputs[: config.num_train_inputs].contiguous(),
            "val_inputs": inputs[config.num_train_inputs :].contiguous(),
        }

    def training_batch(self, step: int | Tensor) -> Batch:
        """A random task for each sequence, on inputs that training may show."""
        tasks_A, inputs_N = self.world["train_tasks"], self.world["train_inputs"]
        device, shape = inputs_N.device, (self.batch_size, self.config.num_examples)
        key = stream_key(self.run_seed, "batch-tasks")
        chosen_B = integers(key, len(tasks_A), shape[:1], step, device)
        key = stream_key(self.run_seed, "batches")
        inputs_BT = inputs_N[choose_distinct(key, len(inputs_N), shape, step, device)]
        return self._rows(tasks_A[chosen_B], inputs_BT)

    def evaluation_batch(self, split: Split, num_sequences: int, num_examples: int) -> Batch:
        """Tasks take turns; where inputs are unseen, only the query is, and only it is asked."""
        tasks_A = self.world["train_tasks" if split.tasks_seen else "ood_tasks"]
        inputs_N = self.world["train_inputs"]
        tasks_B = tasks_A.repeat(-(-num_sequences // len(tasks_A)))
        shape = (len(tasks_B), self.config.num_examples)
        key = stream_key(self.task_seed, f"evaluation:{split.name}")
        inputs_BT = inputs_N[choose_distinct(key, len(inputs_N), shape, device=inputs_N.device)]
        if not split.inputs_seen:
            queries_N, key = self.world["val_inputs"], stream_key(self.task_seed, "queries")
            chosen_B = integers(key, len(queries_N), shape[:1], device=inputs_N.device)
            inputs_BT[:, -1] = queries_N[chosen_B]
        batch = self._rows(tasks_B, inputs_BT[:, shape[1] - num_examples :])
        if not split.inputs_seen:
            batch.is_scored_BT[:, :-1] = False
        return batch

    def hypotheses(self) -> Hypotheses:
        """Every task on every input. Optional: with it come the exact Bayesian predictors."""
        p = self.config.modulus
        tasks_A = torch.arange(p, p * p, device=self.world["train_tasks"].device)
        answers_AN = self._answers(
            tasks_A, torch.arange(p, device=tasks_A.device).expand(len(tasks_A), p)
        )
        return Hypotheses.of(answers_AN, self.world["train_tasks"] - p)

    def observed(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The input of each example, and the answer shown for it."""
        examples_BT2 = batch.tokens_BL.unflatten(1, (-1, 2))
        return examples_BT2[..., 0], examples_BT2[..., 1]

    def _rows(self, tasks_B: Tensor, inputs_BT: Tensor) -> Batch:
        return rows_of_examples(inputs_BT, self._answers(tasks_B, inputs_BT))

    def _answers(self, tasks_B: Tensor, inputs_BT: Tensor) -> Tensor:
        p = self.config.modulus
        a_B1, b_B1 = tasks_B[:, None] // p, tasks_B[:, None] % p
        return (a_B1 * inputs_BT**2 + b_B1) % p


@epigrok.register_preset("own-task")
def own_task() -> epigrok.RunConfig:
    """In-context z = a·x² + b mod 13 with the recipe of icl-tiny."""
    return replace(epigrok.preset("icl-tiny"), preset="own-task", task=SquareTask())
