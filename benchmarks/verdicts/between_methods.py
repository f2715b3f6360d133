"""Claims that compare the two methods, and the control for IVON's effective sample size."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.verdicts.claims import NOT_TESTED, Finding
from benchmarks.verdicts.evidence import HELD_OUT, HIGH, Method, middle


@dataclass(frozen=True)
class Comparison:
    name: str
    place: str
    statement: str
    rule: Callable[[Method, Method], Finding]
    """Of MAP + Laplace and IVON; for the control, of IVON as in the paper and with fixed ESS."""


def broader(laplace: Method, ivon: Method) -> Finding:
    """Cells of the shared grid in which each method answers unseen tasks on unseen inputs."""
    cells = [method.cells("accuracy", "ood_val") for method in (laplace, ivon)]
    shared = cells[0].keys() & cells[1].keys()
    if len(shared) < 4:
        return NOT_TESTED
    counts = [sum(of[cell] >= HIGH for cell in shared) for of in cells]
    means = [sum(of[cell] for cell in shared) / len(shared) for of in cells]
    text = (
        f"{counts[0]} of {len(shared)} cells at {HIGH} or more against {counts[1]}; mean accuracy "
        f"{means[0]:.2f} against {means[1]:.2f}"
    )
    is_broader = counts[0] > counts[1]
    is_tie = counts[0] == counts[1] and means[0] > means[1] + 0.02
    return Finding("agrees" if is_broader else "partly" if is_tie else "does not", text)


def more_under_noise(laplace: Method, ivon: Method) -> Finding:
    """Largest EU over that of a clean context."""
    ratios = []
    for method in (laplace, ivon):
        curves = [method.series("context_noise", "epistemic", split) for split in HELD_OUT]
        ratios.append([max(curve) / curve[0] for curve in curves if curve and curve[0]])
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
        for split in HELD_OUT:
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
    ),
    Comparison(
        "more under noise",
        "Context noise, text",
        "EU increases with context noise more markedly for Laplace than for IVON",
        more_under_noise,
    ),
)
CONTROL = Comparison(
    "not built in",
    "Figure 3, a control of ours",
    "IVON's EU falls with task count also where ESS does not grow with it",
    ess_explains_map,
)
