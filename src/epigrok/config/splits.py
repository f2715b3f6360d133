"""Splits: what a model is evaluated on, by whether training showed the tasks and the inputs.

A split that is added here, or returned by a task of your own, appears in every table, figure and
report; only its colour lives elsewhere, in `figures/style.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Split:
    """A set of sequences to be evaluated on."""

    name: str
    """As the column `split` of every table has it."""
    tasks_seen: bool
    """Whether training showed its tasks."""
    inputs_seen: bool
    """Whether training showed its inputs with these tasks."""
    meaning: str
    """What it is, in the words of a caption."""

    @property
    def is_training(self) -> bool:
        """Whether it holds what training showed."""
        return self.tasks_seen and self.inputs_seen

    @property
    def goal(self) -> str:
        """What a model has generalised to that is right here."""
        return "unseen inputs" if self.tasks_seen else "unseen tasks"


ID_TRAIN = Split("id_train", True, True, "what was trained on")
ID_VAL = Split("id_val", True, False, "held-out inputs of training tasks")
OOD_TRAIN = Split("ood_train", False, True, "unseen tasks on training inputs")
OOD_VAL = Split("ood_val", False, False, "unseen tasks")

SPLITS = (ID_TRAIN, ID_VAL, OOD_TRAIN, OOD_VAL)
"""From what was trained on to what is hardest: the order of legends and columns."""


def in_order(names: Iterable[str]) -> list[str]:
    """Names of splits from training to hardest, those of somebody's own task last."""
    known = [split.name for split in SPLITS]
    found = list(dict.fromkeys(names))
    return [n for n in known if n in found] + [n for n in found if n not in known]


def shows_generalisation(name: str) -> bool:
    """Whether a split holds inputs that training did not show, so that right answers are earned."""
    return all(split.name != name or not split.inputs_seen for split in SPLITS)


def of_hardest(values: Mapping[str, Value]) -> Value | None:
    """The value of the hardest split among those that show generalisation."""
    names = [name for name in in_order(values) if shows_generalisation(name)]
    return values[names[-1]] if names else None
