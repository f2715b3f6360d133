"""Claims on longer and on noisier contexts, in the cell that the paper takes for them."""

from itertools import pairwise

from benchmarks.verdicts.claims import (
    LOW_CORRELATION,
    Claim,
    Finding,
    decided,
    decided_by_split,
    rank_correlation,
)
from benchmarks.verdicts.evidence import Method, exact_of

SLACK = 0.05
"""Steps against a trend up to this count as none: two standard errors of an accuracy of 0.8 over
256 sequences."""
_STRAIGHT = 0.9
"""A line that explains this share of a curve's variance."""


def curves_of(method: Method, axis: str, metric: str) -> dict[str, list[float]]:
    """Split -> medians along the axis, where there are at least three."""
    curves = {split: method.series(axis, metric, split) for split in method.held_out}
    return {split: list(curve.values()) for split, curve in curves.items() if len(curve) > 2}


def _trend(method: Method, axis: str, metric: str, sign: int) -> Finding:
    """Whether a curve goes up (sign 1) or down (-1) on every split, but for `SLACK`."""
    curves = curves_of(method, axis, metric)
    against = {
        split: max(sign * (before - after) for before, after in pairwise(curve))
        for split, curve in curves.items()
    }
    changes = {split: curve[-1] - curve[0] for split, curve in curves.items()}
    text = "; ".join(
        f"{split} {changes[split]:+.3g}, largest step against it {max(0.0, against[split]):.2g}"
        for split in curves
    )
    goes = [sign * changes[split] > SLACK and against[split] <= SLACK for split in curves]
    return decided(text, *goes)


def accuracy_grows(method: Method) -> Finding:
    return _trend(method, "context_length", "accuracy", 1)


def aleatoric_falls(method: Method) -> Finding:
    return _trend(method, "context_length", "aleatoric", -1)


def aleatoric_floor(method: Method) -> Finding:
    curves = curves_of(method, "context_length", "aleatoric")
    floors = {s: method.series("context_length", "aleatoric", s, exact_of(s)) for s in curves}
    gaps = {s: curves[s][-1] - list(floor.values())[-1] for s, floor in floors.items() if floor}
    text = "AU above the exact predictor's at the full context: "
    text += "; ".join(f"{split} {gap:+.2g} nats" for split, gap in gaps.items())
    return decided(text, *(abs(gap) <= 0.05 for gap in gaps.values()))


def humps(method: Method) -> dict[str, tuple[int, float, float]]:
    """Split -> context length at which EU is largest, that EU, and its share that is left."""
    found = {}
    for split in curves_of(method, "context_length", "epistemic"):
        curve = method.series("context_length", "epistemic", split)
        length = max(curve, key=curve.__getitem__)
        left = curve[max(curve)] / curve[length] if curve[length] else 1.0
        found[split] = (int(length), curve[length], left)
    return found


def is_hump(length: int, left: float) -> bool:
    return length > 1 and left < 0.5


def rises_then_falls(method: Method) -> Finding:
    found = humps(method)
    text = "; ".join(
        f"{split}: peak at length {length}, {left:.2f} of it at the end"
        for split, (length, _, left) in found.items()
    )
    return decided(text, *(is_hump(length, left) for length, _, left in found.values()))


def accuracy_degrades(method: Method) -> Finding:
    return _trend(method, "context_noise", "accuracy", -1)


def accuracy_degrades_smoothly(method: Method) -> Finding:
    curves = curves_of(method, "context_noise", "accuracy")
    shares = {
        split: max(before - after for before, after in pairwise(curve)) / (curve[0] - curve[-1])
        for split, curve in curves.items()
        if curve[0] - curve[-1] > SLACK
    }
    text = "largest share of the fall in one step of noise"
    return decided_by_split(text, shares, lambda share: share < 0.5)


def aleatoric_rises(method: Method) -> Finding:
    return _trend(method, "context_noise", "aleatoric", 1)


def aleatoric_in_proportion(method: Method) -> Finding:
    import numpy as np

    explained = {}
    for split in curves_of(method, "context_noise", "aleatoric"):
        curve = method.series("context_noise", "aleatoric", split)
        noises, values = np.array(list(curve)), np.array(list(curve.values()))
        if values[-1] - values[0] > SLACK:
            explained[split] = float(np.corrcoef(noises, values)[0, 1] ** 2)
    text = "share of the variance that a straight line explains"
    return decided_by_split(text, explained, lambda value: value >= _STRAIGHT)


def epistemic_rises(method: Method) -> Finding:
    curves = curves_of(method, "context_noise", "epistemic")
    ratios = {split: max(curve) / curve[0] for split, curve in curves.items() if curve[0]}
    text = "largest EU over that without noise"
    return decided_by_split(text, ratios, lambda ratio: ratio > 1.5)


def _informative(method: Method, axis: str) -> Finding:
    accuracy, epistemic = (curves_of(method, axis, name) for name in ("accuracy", "epistemic"))
    found = {split: rank_correlation(accuracy[split], epistemic[split]) for split in accuracy}
    text = "rank correlation of EU with accuracy along the series"
    return decided_by_split(text, found, lambda value: value < LOW_CORRELATION)


def informative_over_length(method: Method) -> Finding:
    return _informative(method, "context_length")


def informative_over_noise(method: Method) -> Finding:
    return _informative(method, "context_noise")


_LENGTH = "context_length"
_NOISE = "context_noise"
CLAIMS = (
    Claim(
        "longer is better",
        "Context length, caption and text",
        "accuracy improves monotonically with context size on all splits",
        accuracy_grows,
        axis=_LENGTH,
    ),
    Claim(
        "AU falls",
        "Context length, caption and text",
        "AU decreases monotonically with more context",
        aleatoric_falls,
        axis=_LENGTH,
    ),
    Claim(
        "floor",
        "Context length, text",
        "AU converges to a floor (tested: the exact predictor's)",
        aleatoric_floor,
        axis=_LENGTH,
    ),
    Claim(
        "EU rises, then falls",
        "Context length, caption and text",
        "EU increases at small context sizes, then decreases sharply",
        rises_then_falls,
        axis=_LENGTH,
    ),
    Claim(
        "informative over length",
        "Conclusion",
        "EU remains informative as the context gets longer (tested: it falls as accuracy rises)",
        informative_over_length,
        axis=_LENGTH,
    ),
    Claim(
        "noise hurts",
        "Context noise, caption and text",
        "accuracy degrades with noise on all splits",
        accuracy_degrades,
        axis=_NOISE,
    ),
    Claim(
        "smoothly",
        "Context noise, text",
        "the loss of accuracy with noise is smooth",
        accuracy_degrades_smoothly,
        axis=_NOISE,
    ),
    Claim(
        "noise raises AU",
        "Context noise, caption and text",
        "AU rises with the noise level",
        aleatoric_rises,
        axis=_NOISE,
    ),
    Claim(
        "in proportion",
        "Context noise, text",
        "AU rises proportionally to the noise level",
        aleatoric_in_proportion,
        axis=_NOISE,
    ),
    Claim(
        "noise raises EU",
        "Context noise, caption and text",
        "EU increases with noise",
        epistemic_rises,
        axis=_NOISE,
    ),
    Claim(
        "informative over noise",
        "Conclusion",
        "EU remains informative as the context gets noisier (tested: it rises as accuracy falls)",
        informative_over_noise,
        axis=_NOISE,
    ),
)
