"""The rules on recorded runs: states, false alarms, misses, lag."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

import numpy as np

from benchmarks.detection.first_rule import FirstReading, first_rule_states
from benchmarks.detection.statistics import ERROR, Table
from epigrok.monitor import StateRule, ToleranceRatio
from epigrok.monitor.standing import Reading, Standing
from epigrok.monitor.states import Confirm, follow

FIFTH_RULE = StateRule(settled_ahead_from=inf, head_threshold=0.0, ask_again_over=1.0)
"""Without the clauses of the sixth."""
FOURTH_RULE = replace(FIFTH_RULE, by_heart_deviations=inf)
"""Without the clause of the fifth."""
THIRD_RULE = replace(FOURTH_RULE, kept_from=-2.0, seen_steady_from=None)
"""Without the clauses of the fourth, which ask for answers that stored looks do not have."""
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


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What the rule is shown: the sign of fit, and the columns of both ratios."""

    fit: Literal["train accuracy", "train loss", "none"] = "train accuracy"
    head: str = "ratio"
    network: str | None = "ratio, whole"
    """None where the head alone decides."""


def verdicts(table: Table, rule: StateRule, signs: Signs) -> list[Verdict]:
    """Follow every run and watched set; looks are in order within a run."""
    found = []
    for index in _sets(table):
        standing, states, readable, asked = Standing(), [], [], [0]
        for at in index:
            confirm = _confirm(table, int(at), signs.network, asked) if signs.network else None
            standing = follow(standing, reading_of(table, int(at), signs), rule, confirm)
            states.append(standing.state)
            readable.append(standing.unreadable is None)
        found.append(_verdict(table, index, states, readable, asked[0]))
    return found


def first_rule_verdicts(table: Table) -> list[Verdict]:
    """The same under the first rule."""
    found = []
    for index in _sets(table):
        columns = ("ratio", ERROR, "train accuracy", "num classes")
        readings = (FirstReading(*(float(table[name][at]) for name in columns)) for at in index)
        found.append(_verdict(table, index, *first_rule_states(readings), 0))
    return found


def reading_of(table: Table, at: int, signs: Signs) -> Reading:
    """One recorded look as the monitor would have seen it."""
    passed: dict[str, Any] = {
        "train accuracy": {"train_accuracy": float(table["train accuracy"][at])},
        "train loss": {"train_loss": float(table["train loss"][at])},
        "none": {"seen_confidence": float(table["seen confidence"][at])},
    }[signs.fit]
    ratio = ratio_of(table, at, signs.head)
    return Reading(
        step=int(table["step"][at]),
        ratio=ratio.value,
        chance=float(table["chance"][at]),
        steadiness=float(table["steadiness"][at]),
        log_standard_error=ratio.log_standard_error,
        reason=ratio.reason,
        **passed,
    )


def ratio_of(table: Table, at: int, column: str) -> ToleranceRatio:
    """A recorded ratio.

    Where a column's way of measuring was not recorded (no standard error; the whole network in
    other ways, for slow networks), the default's is taken.
    """
    default = "ratio, whole" if column.startswith(("ratio, whole", "ratio, all")) else "ratio"
    value, error = (float(table[name][at]) for name in (column, _error_of(column)))
    if not np.isfinite(value):
        value, error = (float(table[name][at]) for name in (default, _error_of(default)))
    if not np.isfinite(error):
        error = float(table[_error_of(default)][at])
    reason = None if np.isfinite(value) else "not readable"
    return ToleranceRatio(value=value, log_standard_error=error, reason=reason)


def _error_of(column: str) -> str:
    return column.replace("ratio", ERROR, 1)


def _confirm(table: Table, at: int, column: str, asked: list[int]) -> Confirm:
    def confirm() -> ToleranceRatio:
        asked[0] += 1
        return ratio_of(table, at, column)

    return confirm


def _sets(table: Table) -> Iterator[np.ndarray]:
    """The looks of every run and watched set, in order."""
    for run, watched in sorted(set(zip(table["run"], table["watched"]))):
        index = np.flatnonzero((table["run"] == run) & (table["watched"] == watched))
        yield index[np.argsort(table["step"][index], kind="stable")]


def _verdict(
    table: Table, index: np.ndarray, states: list[str], readable: list[bool], num_asked: int
) -> Verdict:
    first = index[0]
    return Verdict(
        **{name: table[name][first] for name in ("run", "kind", "role", "truth", "watched")},
        states=tuple(states),
        generality=table["generality"][index],
        steps=table["step"][index],
        is_readable=np.array(readable),
        num_asked=num_asked,
    )
