"""What is learnt: the base class of task settings, and those of the three built-in families.

The families themselves live in `tasks`. Your own task needs one file for both: settings derived
from `TaskConfig`, and a family registered for them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from epigrok.config.checks import (
    require,
    require_fraction,
    require_non_negative,
    require_positive,
    require_prime,
)
from epigrok.config.splits import ID_TRAIN, ID_VAL, OOD_TRAIN, OOD_VAL, Split

TASKS_PER_BASE_TASK = 4
"""A base task and the three that complete its parallelogram."""
Operation = Literal["add", "subtract", "multiply", "divide", "quadratic"]


class TaskConfig(ABC):
    """Settings of a task: a frozen dataclass that says what its sequences look like.

    A sequence is `num_examples` examples of `example_length` tokens; the last token of an example
    is its answer.
    """

    kinds: ClassVar[dict[str, type["TaskConfig"]]] = {}
    """Settings of every known task, by their name in `config.json`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        TaskConfig.kinds[cls.__name__] = cls

    @property
    @abstractmethod
    def num_examples(self) -> int:
        """Examples in a sequence; 1 if there is no context."""

    @property
    @abstractmethod
    def example_length(self) -> int:
        """Tokens in an example."""

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """Number of tokens, and of classes."""

    @property
    @abstractmethod
    def splits(self) -> tuple[Split, ...]:
        """The splits to evaluate on, the training split first."""

    @property
    @abstractmethod
    def num_training_points(self) -> int:
        """Distinct (task, input) cells of the training set."""

    def require_batch_size(self, batch_size: int) -> None:  # noqa: B027
        """Refuse a batch size that does not suit the task; by default every size does."""


@dataclass(frozen=True, kw_only=True)
class TwoParameterTask(TaskConfig):
    """In context: triplets (x, y, z) with z = a·x + b·y mod p; the task (a, b) is never shown."""

    modulus: int = 29
    """Prime p; tokens, inputs and task coefficients are all residues mod p."""
    num_base_tasks: int = 64
    """Base tasks n; there are 4·n training tasks."""
    construction: Literal["parallelogram", "random"] = "parallelogram"
    """How the 4·n training tasks are chosen: by completing each base task, or at random."""
    allows_zero: bool = True
    """Whether a or b may be 0; such tasks depend on one input only and are learnt first."""
    num_ood_tasks: int = 256
    """Unseen tasks for evaluation: this many, or all that remain if fewer; 0 for none."""
    train_fraction: float = 0.8
    """Share of the p² input pairs that training may show."""
    num_examples: int = 32
    """Context length: triplets in the window, the last being the query."""
    shares_inputs: bool = True
    """Whether all tasks of a training batch see the same inputs, as in the paper, or each sequence
    draws its own."""
    repeats_inputs: bool = True
    """Whether a training sequence may show an input twice, and so an answer to copy, as in the
    paper's repeated training set. In evaluation the context never repeats the query."""

    def __post_init__(self) -> None:
        require_prime(self.modulus)
        require_fraction("train_fraction", self.train_fraction)
        require_positive(num_base_tasks=self.num_base_tasks, num_examples=self.num_examples)
        existing = self.num_possible_tasks
        require(
            self.num_train_tasks <= existing,
            f"{self.num_train_tasks} training tasks asked for (4 x {self.num_base_tasks}), but "
            f"only {existing} exist for p = {self.modulus}; lower num_base_tasks",
        )
        require_non_negative(num_ood_tasks=self.num_ood_tasks)
        require(
            self.num_ood_tasks == 0 or self.num_train_tasks < existing,
            f"all {existing} tasks are training tasks, so none is left unseen; lower "
            "num_base_tasks or set num_ood_tasks to 0",
        )
        num_inputs = self.modulus**2
        require(
            0 < self.num_train_inputs < num_inputs,
            f"train_fraction {self.train_fraction} leaves {self.num_train_inputs} of {num_inputs} "
            "inputs for training; training and evaluation need at least one each",
        )

    @property
    def num_possible_tasks(self) -> int:
        """Pairs (a, b) to choose from."""
        return self.modulus**2 if self.allows_zero else (self.modulus - 1) ** 2

    @property
    def num_train_tasks(self) -> int:
        """Training tasks T = 4·n."""
        return TASKS_PER_BASE_TASK * self.num_base_tasks

    @property
    def num_train_inputs(self) -> int:
        """Input pairs that training may show."""
        return round(self.train_fraction * self.modulus**2)

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens, and of classes."""
        return self.modulus

    @property
    def example_length(self) -> int:
        """Tokens of one example: x, y, z."""
        return 3

    @property
    def splits(self) -> tuple[Split, ...]:
        """(tasks seen or not) x (inputs seen or not)."""
        seen = (ID_TRAIN, ID_VAL)
        return (*seen, OOD_TRAIN, OOD_VAL) if self.num_ood_tasks else seen

    @property
    def num_training_points(self) -> int:
        """Distinct (task, input) cells of the training set."""
        return self.num_train_tasks * self.num_train_inputs

    def require_batch_size(self, batch_size: int) -> None:
        """Refuse a batch that the training tasks cannot share equally."""
        require(
            batch_size % self.num_train_tasks == 0,
            f"batch_size {batch_size} is not a multiple of the {self.num_train_tasks} training "
            "tasks, which share it equally",
        )


@dataclass(frozen=True, kw_only=True)
class OneParameterTask(TaskConfig):
    """In context: pairs (x, z) with z = a·x mod p; (task, input) cells are held out.

    Inputs and tasks are the p - 1 non-zero residues. The query of `id_val` is a held-out cell of a
    training task, and its context comes from training cells; `ood_val` has unseen tasks.
    """

    modulus: int = 31
    num_train_tasks: int = 26
    num_ood_tasks: int = 4
    train_fraction: float = 0.8
    """Share of each training task's inputs that training may show."""
    num_examples: int = 6
    """Context length: pairs in the window, the last being the query."""
    random_labels: bool = False
    """Control: a random answer for every (task, input) cell, so that nothing can be inferred."""

    def __post_init__(self) -> None:
        require_prime(self.modulus)
        require_fraction("train_fraction", self.train_fraction)
        require_positive(num_train_tasks=self.num_train_tasks, num_examples=self.num_examples)
        require_non_negative(num_ood_tasks=self.num_ood_tasks)
        asked = self.num_train_tasks + self.num_ood_tasks
        require(
            asked <= self.num_inputs,
            f"{self.num_train_tasks} training and {self.num_ood_tasks} unseen tasks asked for, but "
            f"only {self.num_inputs} exist for p = {self.modulus}; lower one of the two",
        )
        require(
            0 < self.num_train_inputs < self.num_inputs,
            f"train_fraction {self.train_fraction} leaves {self.num_train_inputs} of "
            f"{self.num_inputs} inputs for training; training and evaluation need at least one "
            "each",
        )

    @property
    def num_inputs(self) -> int:
        """Non-zero residues."""
        return self.modulus - 1

    @property
    def num_train_inputs(self) -> int:
        """Training cells of each training task."""
        return round(self.train_fraction * self.num_inputs)

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens, and of classes."""
        return self.modulus

    @property
    def example_length(self) -> int:
        """Tokens of one example: x, z."""
        return 2

    @property
    def splits(self) -> tuple[Split, ...]:
        """Seen cells, held-out cells of seen tasks, unseen tasks."""
        seen = (ID_TRAIN, ID_VAL)
        return (*seen, OOD_VAL) if self.num_ood_tasks else seen

    @property
    def num_training_points(self) -> int:
        """Distinct (task, input) cells of the training set."""
        return self.num_train_tasks * self.num_train_inputs


@dataclass(frozen=True, kw_only=True)
class ClassicTask(TaskConfig):
    """One table c = a ∘ b mod p, some of its cells for training: the first task seen to grok."""

    modulus: int = 59
    operation: Operation = "add"
    """`quadratic` is a² + a·b + b²; `divide` leaves out b = 0."""
    train_fraction: float = 0.5
    random_labels: bool = False
    """Control: shuffle the answers over the whole table, so that nothing can be generalised."""

    def __post_init__(self) -> None:
        require_prime(self.modulus)
        require_fraction("train_fraction", self.train_fraction)
        require(
            0 < self.num_training_points < self.num_cells,
            f"train_fraction {self.train_fraction} leaves {self.num_training_points} of "
            f"{self.num_cells} cells for training; training and evaluation need at least one each",
        )

    @property
    def num_cells(self) -> int:
        """Cells of the table."""
        num_divisors = self.modulus - 1 if self.operation == "divide" else self.modulus
        return self.modulus * num_divisors

    @property
    def num_training_points(self) -> int:
        """Cells that training may show."""
        return round(self.train_fraction * self.num_cells)

    @property
    def num_examples(self) -> int:
        """One: a sequence is one cell of the table."""
        return 1

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens, and of classes."""
        return self.modulus

    @property
    def example_length(self) -> int:
        """Tokens of one example: a, b, c."""
        return 3

    @property
    def splits(self) -> tuple[Split, ...]:
        """Seen and unseen cells."""
        return (ID_TRAIN, ID_VAL)

    def require_batch_size(self, batch_size: int) -> None:
        """Refuse more cells than there are: a batch holds a cell at most once."""
        require(
            batch_size <= self.num_training_points,
            f"batch_size {batch_size} exceeds the {self.num_training_points} training cells; "
            "lower it",
        )
