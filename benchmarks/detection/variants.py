"""The tolerance ratio measured in other ways, from features and head: rows, draws, level, noise."""

from dataclasses import replace
from math import nan

import torch

from epigrok.monitor import Head, HeadInputs, ToleranceSettings, head_answers, tolerance
from epigrok.monitor.noise import flip_scales, logit_noise
from epigrok.monitor.tolerance import Answers, Tolerance, tolerance_ratio
from epigrok.random_streams import normal, stream_key

DEFAULT = ToleranceSettings()
SETTINGS: dict[str, tuple[int, ToleranceSettings]] = {
    "default": (256, DEFAULT),
    "64 rows": (64, DEFAULT),
    "1024 rows": (1024, DEFAULT),
    "4 draws": (256, replace(DEFAULT, num_draws=4)),
    "16 draws": (256, replace(DEFAULT, num_draws=16)),
    "level 0.8": (256, replace(DEFAULT, level=0.8)),
    "level 0.95": (256, replace(DEFAULT, level=0.95)),
}


def ratios(seen: HeadInputs, watched: HeadInputs) -> dict[str, tuple[float, float, float, float]]:
    """For each variant: the ratio, the standard error of its log, τ(watched), τ(seen)."""
    num_classes = len(seen.head.weight_CD)
    found: dict[str, tuple[float, float, float, float]] = {}
    for name, (num_rows, settings) in SETTINGS.items():
        taus = [
            tolerance(head_answers(_first(part, num_rows), settings), num_classes, settings)
            for part in (watched, seen)
        ]
        found[name] = _entry(*taus)
    short = [_first(part, 256) for part in (watched, seen)]
    found["bfloat16"] = _entry(
        *(tolerance(head_answers(_rounded(p), DEFAULT), num_classes, DEFAULT) for p in short)
    )
    found["std noise"] = _entry(
        *(tolerance(_std_answers(p, DEFAULT), num_classes, DEFAULT) for p in short)
    )
    for name, corrected in (("plain agreement", False), ("clean marginals", True)):
        taus_of = [_quantile_tolerance(part, DEFAULT, corrected) for part in short]
        found[name] = (taus_of[0] / taus_of[1] if taus_of[1] else nan, nan, *taus_of)
    return found


def calibrated_epistemic(inputs: HeadInputs, scale: float, settings: ToleranceSettings) -> float:
    """Mutual information, in nats, under noise of size `scale` on the head."""
    logits_NC = inputs.logits()
    noise_SNC = logit_noise(inputs, settings)
    logs = (logits_NC + scale * noise_SNC).double().log_softmax(dim=-1)
    mean = logs.exp().mean(dim=0)
    total = -torch.xlogy(mean, mean).sum(dim=-1)
    return float((total + (logs.exp() * logs).sum(dim=-1).mean(dim=0)).clamp_min(0).mean())


def _quantile_tolerance(inputs: HeadInputs, settings: ToleranceSettings, corrected: bool) -> float:
    """τ with chance from the clean answers' shares alone: a quantile of the flip scales."""
    answers = inputs.logits().argmax(dim=1)
    shares = torch.bincount(answers, minlength=len(inputs.head.weight_CD)) / len(answers)
    chance = float(shares.square().sum()) if corrected else 0.0
    kept = settings.level + (1.0 - settings.level) * chance
    return float(
        flip_scales(inputs, settings)
        .flatten()
        .sort()
        .values[int((1.0 - kept) * settings.num_draws * len(answers))]
    )


def _std_answers(inputs: HeadInputs, settings: ToleranceSettings) -> Answers:
    weight = inputs.head.weight_CD
    key = stream_key(settings.seed, "tolerance:head:weight")
    spread = weight.std()
    added = torch.stack(
        [
            inputs.features_ND @ (spread * normal(key, tuple(weight.shape), draw)).T
            for draw in range(settings.num_draws)
        ]
    )
    logits = inputs.logits()
    return lambda scale: (logits + scale * added).argmax(dim=-1)


def _rounded(inputs: HeadInputs) -> HeadInputs:
    bias = inputs.head.bias_C
    head = Head(
        weight_CD=inputs.head.weight_CD.bfloat16().float(),
        bias_C=None if bias is None else bias.bfloat16().float(),
    )
    return HeadInputs(features_ND=inputs.features_ND.bfloat16().float(), head=head)


def _first(inputs: HeadInputs, count: int) -> HeadInputs:
    return HeadInputs(features_ND=inputs.features_ND[:count], head=inputs.head)


def _entry(watched: Tolerance, seen: Tolerance) -> tuple[float, float, float, float]:
    ratio = tolerance_ratio(watched, seen)
    return ratio.value, ratio.log_standard_error, watched.value, seen.value
