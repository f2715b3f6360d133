"""What the monitor said of one watched set, beside what was true: errors and lag."""

from dataclasses import dataclass
from typing import Any

import numpy as np

GENERAL, NOT_GENERAL = 0.9, 0.5
"""Generality (balanced accuracy above chance) from which a set is generalised, up to which not."""
FITTED = 0.95
"""Accuracy on the seen rows, above chance, from which looks are scored."""


def is_fitted(train_accuracy: Any, chance: Any) -> Any:
    """Whether the training set is, for numbers or arrays; never where all its answers are one."""
    return (train_accuracy - chance >= FITTED * (1.0 - chance)) & (chance < 1.0)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    run: str
    kind: str
    role: str
    truth: str
    watched: str
    way: str
    """How the monitor looked, or how many labels a person had."""
    states: tuple[str, ...]
    generality: np.ndarray
    steps: np.ndarray
    num_asked: int = 0
    """Looks at which the whole network was read."""

    @property
    def first_announced(self) -> int | None:
        return next((i for i, state in enumerate(self.states) if state == "generalised"), None)

    @property
    def outcome(self) -> str:
        """What the run did, by the truth: 'generalised', 'not', 'lost' or 'in between'."""
        best, last = float(self.generality.max()), float(self.generality[-1])
        if last >= GENERAL:
            return "generalised"
        if best >= GENERAL and last <= NOT_GENERAL:
            return "lost"
        return "not" if best <= NOT_GENERAL else "in between"

    @property
    def is_false_alarm(self) -> bool:
        """Announced "generalised" at a look where the set was not."""
        said = np.array([state == "generalised" for state in self.states])
        is_new = said & ~np.concatenate([[False], said[:-1]])
        return bool((is_new & (self.generality <= NOT_GENERAL)).any())

    @property
    def is_false_loss(self) -> bool:
        """Announced "lost" at a look where the set was general."""
        said = np.array([state == "lost" for state in self.states])
        is_new = said & ~np.concatenate([[False], said[:-1]])
        return bool((is_new & (self.generality >= GENERAL)).any())

    @property
    def num_late(self) -> int:
        """Looks for which "generalised" was still said after it had stopped being true."""
        said = np.array([state == "generalised" for state in self.states])
        return 0 if self.is_false_alarm else int((said & (self.generality <= NOT_GENERAL)).sum())

    @property
    def is_miss(self) -> bool:
        """Ends generalised, or lost, and the last state says otherwise."""
        wanted = {"generalised": "generalised", "lost": "lost"}.get(self.outcome)
        return wanted is not None and self.states[-1] != wanted

    @property
    def lag(self) -> tuple[float, int] | None:
        """Step of the announcement over the step at which generality reached 0.95, and in looks."""
        reached = np.flatnonzero(self.generality >= 0.95)
        if not len(reached) or self.first_announced is None:
            return None
        at = self.first_announced
        return float(self.steps[at] / self.steps[reached[0]]), int(at - reached[0])

    @property
    def short_states(self) -> str:
        """One letter for each look."""
        return "".join("i" if s == "generalising" else s[0].upper() for s in self.states)
