"""Claims that compare the two methods, and the control for IVON's effective sample size."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.verdicts.claims import (
    LOW_CORRELATION,
    NOT_TESTED,
    Finding,
    by_split,
    decided,
    decided_by_split,
    rank_correlation,
    without_series,
)
from benchmarks.verdicts.evidence import HIGH, LEARNT, Cell, Method, middle
from benchmarks.verdicts.over_contexts import curves_of, humps, is_hump

FEWEST_CELLS = 4
"""Cells without which a comparison of two maps is not tested."""


@dataclass(frozen=True)
class Comparison:
    name: str
    place: str
    statement: str
    rule: Callable[[Method, Method], Finding]
    """Of MAP + Laplace and IVON; for the control, of IVON as in the paper and with fixed ESS."""
    split: str = ""
    """The split that it speaks of, if it is one."""
    axis: str = ""
    """Of the series that it is on, if it is on one."""

    def judge(self, one: Method, other: Method) -> Finding:
        """What the runs of two methods say of it."""
        if self.split and not all(self.split in method.held_out for method in (one, other)):
            return Finding("not tested", f"the family has no such split ({self.split})")
        return without_series(self.axis, one, other) or self.rule(one, other)


def _shared(laplace: Method, ivon: Method, metric: str, split: str) -> list[tuple[float, float]]:
    """The values of both methods in each cell that both have."""
    one, other = (method.cells(metric, split) for method in (laplace, ivon))
    cells: list[Cell] = sorted(one.keys() & other.keys())
    return [(one[cell], other[cell]) for cell in cells]


def broader(laplace: Method, ivon: Method) -> Finding:
    """Cells of the shared grid in which each method answers unseen tasks on unseen inputs."""
    pairs = _shared(laplace, ivon, "accuracy", "ood_val")
    if len(pairs) < FEWEST_CELLS:
        return NOT_TESTED
    counts = [sum(pair[k] >= HIGH for pair in pairs) for k in (0, 1)]
    text = f"{counts[0]} of {len(pairs)} cells at {HIGH} or more against {counts[1]}"
    if not any(counts):
        return Finding("not tested", text)
    return decided(text, counts[0] > counts[1])


def stronger(laplace: Method, ivon: Method) -> Finding:
    """Mean accuracy over the shared cells, and in how many of them Laplace is not behind."""
    pairs = _shared(laplace, ivon, "accuracy", "ood_val")
    if len(pairs) < FEWEST_CELLS:
        return NOT_TESTED
    means = [sum(pair[k] for pair in pairs) / len(pairs) for k in (0, 1)]
    not_behind = sum(one >= other - 0.02 for one, other in pairs)
    text = (
        f"mean accuracy {means[0]:.2f} against {means[1]:.2f}; at least as accurate in "
        f"{not_behind} of {len(pairs)} cells"
    )
    if max(map(max, pairs)) < LEARNT:
        return Finding("not tested", text)
    return decided(text, means[0] > means[1] + 0.02, not_behind >= 0.75 * len(pairs))


def same_signature(laplace: Method, ivon: Method) -> Finding:
    """Whether the two maps of EU order the cells alike."""
    found = {}
    for split in laplace.held_out:
        pairs = _shared(laplace, ivon, "epistemic", split)
        learns = laplace.has_transition(split) or ivon.has_transition(split)
        if learns and len(pairs) >= FEWEST_CELLS:
            found[split] = rank_correlation([one for one, _ in pairs], [two for _, two in pairs])
    text = "rank correlation of the two maps of EU"
    return decided_by_split(text, found, lambda value: value > -LOW_CORRELATION)


def same_hump(laplace: Method, ivon: Method) -> Finding:
    """EU over context length: rises and falls with both, and one is at least half again as high."""
    one, other = humps(laplace), humps(ivon)
    shared = [split for split in one if split in other]
    both = [is_hump(of[s][0], of[s][2]) for s in shared for of in (one, other)]
    ratios = {s: one[s][1] / other[s][1] if other[s][1] else float("nan") for s in shared}
    differ = [ratio > 1.5 or ratio < 1 / 1.5 for ratio in ratios.values()]
    text = f"{sum(both)} of {len(both)} curves rise and fall; peak with Laplace over IVON's: "
    return decided(text + by_split(ratios), *both, *differ)


def more_under_noise(laplace: Method, ivon: Method) -> Finding:
    """Largest EU over that of a clean context."""
    ratios = []
    for method in (laplace, ivon):
        curves = curves_of(method, "context_noise", "epistemic").values()
        ratios.append([max(curve) / curve[0] for curve in curves if curve[0]])
    if not all(ratios):
        return NOT_TESTED
    one, other = map(middle, ratios)
    text = f"EU grows {one:.2g} times with Laplace, {other:.2g} times with IVON (median of splits)"
    return Finding("agrees" if one > 1.1 * other else "does not", text)


def ess_explains_map(scaled: Method, fixed: Method) -> Finding:
    """EU at the largest task count over that at the smallest, with ESS ∝ T and with one ESS."""
    falls = []
    for method in (scaled, fixed):
        ratios = []
        for split in method.held_out:
            cells = method.cells("epistemic", split)
            fraction = max(fraction for _, fraction in cells)
            column = {tasks: value for (tasks, f), value in cells.items() if f == fraction}
            if len(column) > 1 and column[min(column)]:
                ratios.append(column[max(column)] / column[min(column)])
        falls.append(middle(ratios))
    text = (
        f"EU at the largest T over the smallest: {falls[0]:.3g} with ESS ∝ T, {falls[1]:.3g} fixed"
    )
    # What remains of the fall once ESS is fixed is learnt and not built in.
    return Finding("agrees" if falls[1] < 0.5 else "does not", text)


COMPARISONS = (
    Comparison(
        "broader",
        "Figure 2, caption and text",
        "on OOD Val Laplace generalises more broadly across configurations than IVON",
        broader,
        split="ood_val",
    ),
    Comparison(
        "stronger",
        "Task diversity, text",
        "on OOD Val Laplace generalises more strongly and consistently than IVON",
        stronger,
        split="ood_val",
    ),
    Comparison(
        "same signature",
        "Figure 3, text; conclusion",
        "the signature of EU over the grid is the same with both methods",
        same_signature,
    ),
    Comparison(
        "same hump",
        "Context length, text",
        "EU rises and falls with context size in both methods, with different magnitudes",
        same_hump,
        axis="context_length",
    ),
    Comparison(
        "more under noise",
        "Context noise, text",
        "EU increases with context noise more markedly for Laplace than for IVON",
        more_under_noise,
        axis="context_noise",
    ),
)
CONTROL = Comparison(
    "not built in",
    "Figure 3, a control of ours",
    "IVON's EU falls with task count also where ESS does not grow with it",
    ess_explains_map,
)
