"""The paper's claims, each with the rule that decides on it.

A rule returns a finding: whether the runs agree, and the number that says so. The task counts of a
small grid are not the paper's, so "T = 256 and 512" reads "the two largest task counts".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan

from benchmarks.verdicts.evidence import HELD_OUT, HIGH, Method, exact_of, middle

SLACK = 0.05
"""Steps against a trend up to this count as none: two standard errors of an accuracy of 0.8 over
256 sequences."""
FEWEST = 4
"""Runs without which a statement about runs is not tested."""


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


def _decided(number: str, *conditions: bool) -> Finding:
    """Agrees if all conditions hold, does not if none does, partly otherwise."""
    verdict = "agrees" if all(conditions) else "partly" if any(conditions) else "does not"
    return Finding(verdict, number)


def _share(hits: int, total: int, what: str) -> Finding:
    """Of the runs that generalised to unseen inputs, those that do something."""
    if total < FEWEST:
        return Finding(
            "not tested", f"{total} runs generalised to unseen inputs, of {FEWEST} needed"
        )
    share = hits / total
    text = f"{hits} of {total} runs that generalised to unseen inputs {what}"
    return _decided(text, share >= 0.75, share > 0.25)


def collapse(method: Method) -> Finding:
    times = method.times("id_val")
    hits = sum(t.collapsed_step is not None for t in times)
    return _share(hits, len(times), "end below 1/4 of their peak")


def collapse_before(method: Method) -> Finding:
    times = method.times("id_val")
    leads = [t.lead_of_collapse for t in times if t.lead_of_collapse is not None]
    found = _share(sum(lead > 0 for lead in leads), len(times), f"collapse before accuracy {HIGH}")
    if not leads:
        return found
    return Finding(found.verdict, f"{found.number}; median lead {middle(leads):g} steps")


def peak_before(method: Method) -> Finding:
    leads = [t.lead_of_peak for t in method.times("id_val") if t.lead_of_peak is not None]
    found = _share(sum(lead > 0 for lead in leads), len(leads), f"peak before accuracy {HIGH}")
    if not leads:
        return found
    return Finding(found.verdict, f"{found.number}; median lead {middle(leads):g} steps")


def diagnostic(method: Method) -> Finding:
    ends = method.last_uncertainty_by_end("id_val")
    low, high = ends["generalised"], [*ends["memorised"], *ends["lost"]]
    if min(len(low), len(high)) < FEWEST:
        return Finding("not tested", f"{len(low)} runs generalised, {len(high)} memorised")
    pairs = [(one < other) + 0.5 * (one == other) for one in low for other in high]
    area = sum(pairs) / len(pairs)
    text = f"AUROC {area:.2f} of the last EU, {len(low)} runs that generalised, {len(high)} not"
    return _decided(text, area >= 0.95, area > 0.75)


def _top(method: Method) -> list[int]:
    return method.task_counts()[-2:]


def _grid_is_there(method: Method) -> bool:
    return len(method.task_counts()) >= 3


def unseen_tasks_at_many_tasks(method: Method) -> Finding:
    if not _grid_is_there(method):
        return NOT_TESTED
    cells = method.cells("accuracy", "ood_train")
    values = [value for (tasks, _), value in cells.items() if tasks in _top(method)]
    text = f"accuracy {min(values):.2f} to {max(values):.2f} in {len(values)} cells"
    return _decided(text, min(values) >= HIGH, max(values) >= HIGH)


def only_many_tasks(method: Method) -> Finding:
    if not _grid_is_there(method):
        return NOT_TESTED
    cells, top = method.cells("accuracy", "ood_val"), _top(method)
    above = [v for (tasks, _), v in cells.items() if tasks in top]
    below = [v for (tasks, _), v in cells.items() if tasks not in top]
    text = f"best cell {max(above):.2f} at the two largest task counts, {max(below):.2f} below"
    return _decided(text, max(below) < HIGH <= max(above), max(above) >= HIGH)


def only_large_fractions(method: Method) -> Finding:
    if not method.is_ivon or not _grid_is_there(method):
        return NOT_TESTED if method.is_ivon else Finding("not tested", "a claim on IVON")
    best: dict[float, float] = {}
    for (_, fraction), value in method.cells("accuracy", "ood_val").items():
        best[fraction] = max(value, best.get(fraction, 0.0))
    largest = max(best)
    others = max(value for fraction, value in best.items() if fraction != largest)
    text = ", ".join(f"{value:.2f} at {fraction:g}" for fraction, value in sorted(best.items()))
    return _decided(f"best cell {text}", best[largest] >= HIGH, others < HIGH <= best[largest])


def mostly_epistemic(method: Method) -> Finding:
    if not _grid_is_there(method):
        return NOT_TESTED
    lowest = method.task_counts()[0]
    shares = [
        value
        for split in HELD_OUT
        for (tasks, _), value in method.cells("epistemic/total", split).items()
        if tasks == lowest
    ]
    text = f"EU/TU {min(shares):.2f} to {max(shares):.2f} at the smallest task count"
    return _decided(text, min(shares) > 0.5, max(shares) > 0.5)


def _top_over_rest(method: Method, metric: str) -> list[float]:
    """Median at the two largest task counts over that below, for each held-out split."""
    ratios = []
    for split in HELD_OUT:
        cells, top = method.cells(metric, split), _top(method)
        above = middle([v for (tasks, _), v in cells.items() if tasks in top])
        below = middle([v for (tasks, _), v in cells.items() if tasks not in top])
        ratios.append(above / below if below else float("nan"))
    return [ratio for ratio in ratios if not isnan(ratio)]


def uncertainty_drops(method: Method) -> Finding:
    if not _grid_is_there(method):
        return NOT_TESTED
    ratios = _top_over_rest(method, "epistemic")
    text = f"EU at the two largest task counts over that below: {_listed(ratios)}"
    return _decided(text, max(ratios) < 0.5, min(ratios) < 0.5)


def aleatoric_stays(method: Method) -> Finding:
    if not _grid_is_there(method):
        return NOT_TESTED
    ratios = _top_over_rest(method, "aleatoric")
    text = f"AU at the two largest task counts over that below: {_listed(ratios)}"
    return _decided(text, min(ratios) > 0.5, max(ratios) > 0.5)


def tracks_accuracy(method: Method) -> Finding:
    if not _grid_is_there(method):
        return NOT_TESTED
    found = []
    for split in HELD_OUT:
        accuracy, epistemic = (method.cells(name, split) for name in ("accuracy", "epistemic"))
        shared = sorted(accuracy.keys() & epistemic.keys())
        found.append(rank_correlation(*([c[k] for k in shared] for c in (accuracy, epistemic))))
    text = f"rank correlation of EU with accuracy over cells: {_listed(found)}"
    return _decided(text, max(found) < -0.7, min(found) < -0.7)


def _curves(method: Method, axis: str, metric: str) -> dict[str, list[float]]:
    curves = {split: method.series(axis, metric, split) for split in HELD_OUT}
    return {split: curve for split, curve in curves.items() if len(curve) > 2}


def _trend(method: Method, axis: str, metric: str, sign: int, slack: float) -> Finding:
    """Whether a curve goes up (sign 1) or down (-1) on every split, but for `slack`."""
    curves = _curves(method, axis, metric)
    if not curves:
        return NOT_TESTED
    against = {
        split: max(sign * (before - after) for before, after in pairwise(curve))
        for split, curve in curves.items()
    }
    changes = {split: curve[-1] - curve[0] for split, curve in curves.items()}
    text = "; ".join(
        f"{split} {changes[split]:+.3g}, largest step against it {max(0.0, against[split]):.2g}"
        for split in curves
    )
    goes = [sign * changes[split] > slack and against[split] <= slack for split in curves]
    return _decided(text, *goes)


def accuracy_grows(method: Method) -> Finding:
    return _trend(method, "context_length", "accuracy", 1, SLACK)


def aleatoric_falls(method: Method) -> Finding:
    return _trend(method, "context_length", "aleatoric", -1, SLACK)


def aleatoric_floor(method: Method) -> Finding:
    curves = _curves(method, "context_length", "aleatoric")
    floors = {s: method.series("context_length", "aleatoric", s, exact_of(s)) for s in curves}
    gaps = {s: curves[s][-1] - floor[-1] for s, floor in floors.items() if floor}
    if not gaps:
        return NOT_TESTED
    text = "AU above the exact predictor's at the full context: "
    text += "; ".join(f"{split} {gap:+.2g} nats" for split, gap in gaps.items())
    return _decided(text, *(abs(gap) <= 0.05 for gap in gaps.values()))


def rises_then_falls(method: Method) -> Finding:
    curves = _curves(method, "context_length", "epistemic")
    if not curves:
        return NOT_TESTED
    peaks = {split: max(range(len(c)), key=c.__getitem__) for split, c in curves.items()}
    text = "; ".join(
        f"{split}: peak at length {peak + 1}, {curves[split][-1] / curves[split][peak]:.2f} of it "
        "at the end"
        for split, peak in peaks.items()
    )
    goes = [peak > 0 and curves[s][-1] < 0.5 * curves[s][peak] for s, peak in peaks.items()]
    return _decided(text, *goes)


def accuracy_degrades(method: Method) -> Finding:
    return _trend(method, "context_noise", "accuracy", -1, SLACK)


def aleatoric_rises(method: Method) -> Finding:
    return _trend(method, "context_noise", "aleatoric", 1, SLACK)


def epistemic_rises(method: Method) -> Finding:
    curves = _curves(method, "context_noise", "epistemic")
    if not curves:
        return NOT_TESTED
    ratios = {split: max(c) / c[0] for split, c in curves.items() if c[0]}
    text = "largest EU over that without noise: " + _listed(list(ratios.values()))
    return _decided(text, *(ratio > 1.5 for ratio in ratios.values()))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's; equal values share their mean rank."""
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
