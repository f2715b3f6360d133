"""A claim of the paper, and the finding on it.

A rule returns a finding: whether the runs agree, and the number that says so. The task counts of a
small grid are not the paper's, so "T = 256 and 512" reads "the two largest task counts".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from benchmarks.verdicts.evidence import LEARNT, Method

FEWEST_RUNS = 4
"""Runs without which a statement about runs is not tested."""
FEWEST_COUNTS = 3
"""Task counts without which a statement about the grid is not tested."""

LOW_CORRELATION = -0.7
"""Of ranks, from which on one quantity falls as the other rises."""


@dataclass(frozen=True)
class Finding:
    verdict: str
    """`agrees`, `does not`, `partly` or `not tested`."""
    number: str


NOT_TESTED = Finding("not tested", "no such runs")
Rule = Callable[[Method], Finding]


@dataclass(frozen=True)
class Claim:
    name: str
    place: str
    """In the paper."""
    statement: str
    rule: Rule
    split: str = ""
    """The split that it speaks of; otherwise the rule takes every one that the family has."""
    is_on_grid: bool = False
    """Whether it needs several task counts."""
    axis: str = ""
    """`context_length` or `context_noise` if it is on such a series of one cell."""

    def judge(self, method: Method) -> Finding:
        """What the runs of a method say of it."""
        if self.split and self.split not in method.held_out:
            return Finding("not tested", f"the family has no such split ({self.split})")
        num_counts = len(method.task_counts()) if self.is_on_grid else FEWEST_COUNTS
        if num_counts < FEWEST_COUNTS:
            return Finding("not tested", f"{num_counts} task counts, of {FEWEST_COUNTS} needed")
        return without_series(self.axis, method) or self.rule(method)


def without_series(axis: str, *methods: Method) -> Finding | None:
    """Why a claim on a series of contexts is not tested: no series, or of nothing learnt."""
    for method in methods if axis else ():
        if method.cell_with(axis) is None:
            return NOT_TESTED
        best = max(method.series(axis, "accuracy", "id_val").values())
        if best < LEARNT:
            return Finding("not tested", f"the runs learnt too little: id_val at most {best:.2f}")
    return None


def decided(number: str, *conditions: bool) -> Finding:
    """Agrees if all conditions hold, does not if none does, partly otherwise."""
    if not conditions:
        return Finding("not tested", "no split on which it can be measured")
    verdict = "agrees" if all(conditions) else "partly" if any(conditions) else "does not"
    return Finding(verdict, number)


def share_of_runs(hits: int, total: int, what: str) -> Finding:
    """Of the runs that generalised to unseen inputs, those that do something."""
    if total < FEWEST_RUNS:
        return Finding(
            "not tested", f"{total} runs generalised to unseen inputs, of {FEWEST_RUNS} needed"
        )
    share = hits / total
    text = f"{hits} of {total} runs that generalised to unseen inputs {what}"
    return decided(text, share >= 0.75, share > 0.25)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's; equal values share their mean rank. NaN if one of the two is constant."""
    from scipy.stats import spearmanr

    if min(len(set(one)), len(set(other))) < 2:
        return float("nan")
    return float(spearmanr(one, other).statistic)


def decided_by_split(
    text: str, found: Mapping[str, float], holds: Callable[[float], bool]
) -> Finding:
    """By whether the value of each split that has one is as it should be."""
    known = {split: value for split, value in found.items() if not isnan(value)}
    return decided(f"{text}: {by_split(known)}", *map(holds, known.values()))


def by_split(values: Mapping[str, float]) -> str:
    """Each split with its value."""
    return ", ".join(f"{split} {value:.3g}" for split, value in values.items())
