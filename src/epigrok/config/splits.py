"""Splits: what a model is evaluated on, by whether training showed the tasks and the inputs.

A split that you add here, or that your own task returns, appears in every table, figure and
report. Its colour lives in `figures/style.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Split:
    """A set of sequences to evaluate on."""

    name: str
    """Its name in the column `split` of every table."""
    tasks_seen: bool
    """Whether training showed its tasks."""
    inputs_seen: bool
    """Whether training showed its inputs with these tasks."""
    meaning: str
    """What it is, for captions."""

    @property
    def is_training(self) -> bool:
        """Whether training showed its sequences: both its tasks and its inputs."""
        return self.tasks_seen and self.inputs_seen

    @property
    def shows_generalisation(self) -> bool:
        """Whether accuracy here shows generalisation: training did not show its inputs."""
        return not self.inputs_seen

    @property
    def goal(self) -> str:
        """What a model has generalised to if it is accurate here."""
        return "unseen inputs" if self.tasks_seen else "unseen tasks"


ID_TRAIN = Split("id_train", True, True, "what was trained on")
ID_VAL = Split("id_val", True, False, "held-out inputs of training tasks")
OOD_TRAIN = Split("ood_train", False, True, "unseen tasks on training inputs")
OOD_VAL = Split("ood_val", False, False, "unseen tasks")

SPLITS = (ID_TRAIN, ID_VAL, OOD_TRAIN, OOD_VAL)
"""From training to hardest, the order of legends and columns."""


def in_order(names: Iterable[str]) -> list[str]:
    """Names of splits from training to hardest; splits of plugins come last."""
    known = [split.name for split in SPLITS]
    found = list(dict.fromkeys(names))
    return [n for n in known if n in found] + [n for n in found if n not in known]


def of_hardest(values: Mapping[str, Value], splits: Iterable[Split]) -> Value | None:
    """The value of the hardest of a run's splits, among those that show generalisation."""
    unseen = [split.name for split in splits if split.shows_generalisation]
    names = in_order(name for name in unseen if name in values)
    return values[names[-1]] if names else None
