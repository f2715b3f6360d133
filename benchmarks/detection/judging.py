"""The frozen rule on recorded runs: states, false alarms, misses, lag."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.detection.statistics import Table
from epigrok.monitor.states import Reading, Standing, StateRule, follow

GENERAL, NOT_GENERAL = 0.9, 0.5
"""Generality (balanced accuracy above chance) from which a set is generalised, up to which not."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    run: str
    kind: str
    role: str
    truth: str
    watched: str
    states: tuple[str, ...]
    generality: np.ndarray
    steps: np.ndarray
    is_readable: np.ndarray

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
    def num_late(self) -> int:
        """Looks for which "generalised" was still said after it had stopped being true."""
        said = np.array([state == "generalised" for state in self.states])
        return 0 if self.is_false_alarm else int((said & (self.generality <= NOT_GENERAL)).sum())

    @property
    def num_late_readable(self) -> int:
        """Those of them that could be read, and waited for their confirmation."""
        said = np.array([state == "generalised" for state in self.states])
        late = said & (self.generality <= NOT_GENERAL) & self.is_readable
        return 0 if self.is_false_alarm else int(late.sum())

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


def verdicts(
    table: Table, rule: StateRule, gate: str = "train accuracy", column: str = "ratio"
) -> list[Verdict]:
    """Follow every run and watched set.

    Args:
        table: Looks, in order within a run.
        rule: The constants.
        gate: The sign of fit that is passed: "train accuracy", "train loss" or "none".
        column: The ratio to follow.
    """
    found = []
    for run, watched in sorted(set(zip(table["run"], table["watched"]))):
        index = np.flatnonzero((table["run"] == run) & (table["watched"] == watched))
        index = index[np.argsort(table["step"][index], kind="stable")]
        standing, states, readable = Standing(), [], []
        for at in index:
            standing = follow(standing, reading_of(table, int(at), gate, column), rule)
            states.append(standing.state)
            readable.append(standing.unreadable is None)
        found.append(
            Verdict(
                run=run,
                kind=table["kind"][index[0]],
                role=table["role"][index[0]],
                truth=table["truth"][index[0]],
                watched=watched,
                states=tuple(states),
                generality=table["generality"][index],
                steps=table["step"][index],
                is_readable=np.array(readable),
            )
        )
    return found


def reading_of(table: Table, at: int, gate: str, column: str = "ratio") -> Reading:
    """One recorded look as the monitor would have seen it."""
    ratio = float(table[column][at])
    signs: dict[str, Any] = {
        "train accuracy": {"train_accuracy": float(table["train accuracy"][at])},
        "train loss": {"train_loss": float(table["train loss"][at])},
        "none": {"seen_confidence": float(table["seen confidence"][at])},
    }[gate]
    return Reading(
        step=int(table["step"][at]),
        ratio=ratio,
        num_classes=int(table["num classes"][at]),
        log_standard_error=float(table["log standard error"][at]) if column == "ratio" else 0.0,
        reason=None if np.isfinite(ratio) else "not readable",
        **signs,
    )
