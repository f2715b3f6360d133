"""Claims on the maps over task count and training fraction."""

from benchmarks.verdicts.claims import (
    LOW_CORRELATION,
    NOT_TESTED,
    Claim,
    Finding,
    decided,
    decided_by_split,
    rank_correlation,
)
from benchmarks.verdicts.evidence import HIGH, Method, middle


def _top(method: Method) -> list[int]:
    return method.task_counts()[-2:]


def _above_and_below(method: Method, metric: str, split: str) -> tuple[list[float], list[float]]:
    """The cells of the two largest task counts, and those of the others."""
    cells, top = method.cells(metric, split), _top(method)
    above = [value for (tasks, _), value in cells.items() if tasks in top]
    below = [value for (tasks, _), value in cells.items() if tasks not in top]
    return above, below


_PAPER_TASK_COUNTS = 5


def unseen_tasks_at_many_tasks(method: Method) -> Finding:
    above, _ = _above_and_below(method, "accuracy", "ood_train")
    text = f"accuracy {min(above):.2f} to {max(above):.2f} in {len(above)} cells"
    return decided(text, min(above) >= HIGH, max(above) >= HIGH)


def unseen_tasks_from_many_tasks_on(method: Method) -> Finding:
    """T = 256 is the largest task count of the paper but one."""
    best: dict[int, float] = {}
    for (tasks, _), value in method.cells("accuracy", "ood_train").items():
        best[tasks] = max(value, best.get(tasks, 0.0))
    text = "best cell " + ", ".join(f"{best[n]:.2f} at n = {n}" for n in sorted(best))
    if len(best) < _PAPER_TASK_COUNTS:
        return Finding("not tested", f"{len(best)} task counts, the paper has five: {text}")
    if max(best.values()) < HIGH:
        return Finding("not tested", f"no cell reaches {HIGH}: {text}")
    *fewer, start, _ = sorted(best)
    starts = best[start] >= HIGH
    return decided(text, starts, starts and max(best[n] for n in fewer) < HIGH)


def only_many_tasks(method: Method) -> Finding:
    above, below = _above_and_below(method, "accuracy", "ood_val")
    text = f"best cell {max(above):.2f} at the two largest task counts, {max(below):.2f} below"
    if max(*above, *below) < HIGH:
        return Finding("not tested", f"no cell reaches {HIGH}: {text}")
    return decided(text, max(below) < HIGH <= max(above), max(above) >= HIGH)


def only_large_fractions(method: Method) -> Finding:
    if not method.is_ivon:
        return Finding("not tested", "a claim on IVON")
    best: dict[float, float] = {}
    for (_, fraction), value in method.cells("accuracy", "ood_val").items():
        best[fraction] = max(value, best.get(fraction, 0.0))
    if len(best) < 2:
        return Finding("not tested", "one training fraction")
    largest = max(best)
    others = max(value for fraction, value in best.items() if fraction != largest)
    text = ", ".join(f"{value:.2f} at {fraction:g}" for fraction, value in sorted(best.items()))
    return decided(f"best cell {text}", best[largest] >= HIGH, others < HIGH <= best[largest])


def needs_the_right_fraction(method: Method) -> Finding:
    by_count: dict[int, list[float]] = {count: [] for count in _top(method)}
    for (tasks, _), value in method.cells("accuracy", "ood_val").items():
        if tasks in by_count:
            by_count[tasks].append(value)
    general = [values for values in by_count.values() if max(values) >= HIGH]
    if not general or max(map(len, general)) < 2:
        return Finding("not tested", f"no row of cells in which some reach {HIGH}")
    text = "at the largest task counts "
    text += ", ".join(f"{min(values):.2f} to {max(values):.2f}" for values in general)
    return decided(text, *(min(values) < HIGH for values in general))


def mostly_epistemic(method: Method) -> Finding:
    lowest = method.task_counts()[0]
    shares = [
        value
        for split in method.held_out
        for (tasks, _), value in method.cells("epistemic/total", split).items()
        if tasks == lowest
    ]
    if not shares:
        return NOT_TESTED
    text = f"EU/TU {min(shares):.2f} to {max(shares):.2f} at the smallest task count"
    return decided(text, min(shares) > 0.5, max(shares) > 0.5)


def _top_over_rest(method: Method, metric: str) -> dict[str, float]:
    """Median at the two largest task counts over that below, for each held-out split."""
    ratios = {}
    for split in method.held_out:
        above, below = (middle(values) for values in _above_and_below(method, metric, split))
        ratios[split] = above / below if below else float("nan")
    return ratios


def uncertainty_drops(method: Method) -> Finding:
    ratios = _top_over_rest(method, "epistemic")
    text = "EU at the two largest task counts over that below"
    return decided_by_split(text, ratios, lambda ratio: ratio < 0.5)


def aleatoric_stays(method: Method) -> Finding:
    ratios = _top_over_rest(method, "aleatoric")
    text = "AU at the two largest task counts over that below"
    return decided_by_split(text, ratios, lambda ratio: ratio > 0.5)


def tracks_accuracy(method: Method) -> Finding:
    found = {}
    for split in filter(method.has_transition, method.held_out):
        accuracy, epistemic = (method.cells(name, split) for name in ("accuracy", "epistemic"))
        shared = sorted(accuracy.keys() & epistemic.keys())
        found[split] = rank_correlation(
            [accuracy[cell] for cell in shared], [epistemic[cell] for cell in shared]
        )
    text = "rank correlation of EU with accuracy over cells"
    return decided_by_split(text, found, lambda value: value < LOW_CORRELATION)


CLAIMS = (
    Claim(
        "unseen tasks",
        "Figure 2, caption and text",
        "OOD Train accuracy is high at T = 256 and 512 for any training fraction",
        unseen_tasks_at_many_tasks,
        split="ood_train",
        is_on_grid=True,
    ),
    Claim(
        "unseen tasks from",
        "Figure 2, caption",
        "OOD Train accuracy is high starting at T = 256",
        unseen_tasks_from_many_tasks_on,
        split="ood_train",
        is_on_grid=True,
    ),
    Claim(
        "only many tasks",
        "Task diversity, text",
        "OOD Val generalisation emerges only at the highest task counts",
        only_many_tasks,
        split="ood_val",
        is_on_grid=True,
    ),
    Claim(
        "right fraction",
        "Task diversity, text",
        "OOD Val generalisation requires careful tuning of the training fraction",
        needs_the_right_fraction,
        split="ood_val",
        is_on_grid=True,
    ),
    Claim(
        "only large fractions",
        "Figure 2, caption and text",
        "IVON reaches competitive OOD Val accuracy only at the highest fractions",
        only_large_fractions,
        split="ood_val",
        is_on_grid=True,
    ),
    Claim(
        "mostly epistemic",
        "Figure 3, text",
        "at low task diversity TU is dominated by EU on all splits",
        mostly_epistemic,
        is_on_grid=True,
    ),
    Claim(
        "EU drops",
        "Figure 3, text",
        "EU drops sharply at T = 256 and 512",
        uncertainty_drops,
        is_on_grid=True,
    ),
    Claim(
        "AU stays",
        "Figure 3, text",
        "AU remains high at T = 256 and 512",
        aleatoric_stays,
        is_on_grid=True,
    ),
    Claim(
        "tracks accuracy",
        "Figure 3, text",
        "the fall of EU tracks the transition in the accuracy maps",
        tracks_accuracy,
        is_on_grid=True,
    ),
)
