"""The tolerance ratio measured in other ways, from features and head: rows, draws, level, noise."""

from dataclasses import replace
from math import nan

import torch

from epigrok.monitor import ToleranceSettings, head_answers, tolerance
from epigrok.monitor.noise import flip_scales, logit_noise
from epigrok.monitor.tolerance import Tolerance, tolerance_ratio
from epigrok.posteriors import HeadInputs

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
        found[name] = entry(*taus)
    short = [_first(part, 256) for part in (watched, seen)]
    of_watched, of_seen = (_quantile_tolerance(part, DEFAULT) for part in short)
    found["clean marginals"] = (of_watched / of_seen if of_seen else nan, nan, of_watched, of_seen)
    return found


def calibrated_epistemic(inputs: HeadInputs, scale: float, settings: ToleranceSettings) -> float:
    """Mutual information, in nats, under noise of size `scale` on the head."""
    logits_NC = inputs.logits()
    noise_SNC = logit_noise(inputs, settings)
    logs = (logits_NC + scale * noise_SNC).double().log_softmax(dim=-1)
    mean = logs.exp().mean(dim=0)
    total = -torch.xlogy(mean, mean).sum(dim=-1)
    return float((total + (logs.exp() * logs).sum(dim=-1).mean(dim=0)).clamp_min(0).mean())


def _quantile_tolerance(inputs: HeadInputs, settings: ToleranceSettings) -> float:
    """τ with chance from the clean answers' shares alone: a quantile of the flip scales."""
    answers = inputs.logits().argmax(dim=1)
    shares = torch.bincount(answers, minlength=len(inputs.head.weight_CD)) / len(answers)
    chance = float(shares.square().sum())
    kept = settings.level + (1.0 - settings.level) * chance
    return float(
        flip_scales(inputs, settings)
        .flatten()
        .sort()
        .values[int((1.0 - kept) * settings.num_draws * len(answers))]
    )


def _first(inputs: HeadInputs, count: int) -> HeadInputs:
    return HeadInputs(features_ND=inputs.features_ND[:count], head=inputs.head)


def entry(watched: Tolerance, seen: Tolerance) -> tuple[float, float, float, float]:
    """What is stored of a ratio: its value, the standard error of its log, both tolerances."""
    ratio = tolerance_ratio(watched, seen)
    return ratio.value, ratio.log_standard_error, watched.value, seen.value
