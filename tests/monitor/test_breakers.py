"""What is known to mislead such a statistic: each is right, unreadable, or stated as a limit."""

from dataclasses import replace
from math import pi, sqrt, tan

import torch
from torch import Tensor, nn

from epigrok.monitor import (
    ToleranceRatio,
    ToleranceSettings,
    head_answers,
    tolerance,
    tolerance_ratio,
)
from epigrok.posteriors import Head, HeadInputs, head_inputs
from epigrok.random_streams import integers, normal, stream_key, uniform

SETTINGS = ToleranceSettings(num_draws=32)


def ratio_of(watched: HeadInputs, seen: HeadInputs) -> ToleranceRatio:
    num_classes = len(seen.head.weight_CD)
    taus = [
        tolerance(head_answers(part, SETTINGS), num_classes, SETTINGS) for part in (watched, seen)
    ]
    return tolerance_ratio(*taus)


def rows_with_margins(name: str, margins_N: Tensor, width: int = 200) -> HeadInputs:
    """Two classes; rows of equal length whose logits differ by `margins_N`, up to one scale."""
    noise_ND = normal(stream_key(0, name), (len(margins_N), width))
    noise_ND = noise_ND - noise_ND.mean(dim=1, keepdim=True)
    noise_ND = 30.0 * noise_ND / noise_ND.norm(dim=1, keepdim=True)
    weight_CD = torch.ones(2, width)
    weight_CD[0] = -1.0
    return HeadInputs(
        features_ND=noise_ND + margins_N[:, None] / sqrt(width), head=Head(weight_CD=weight_CD)
    )


def test_two_classes_learnt_by_heart_have_the_ratio_of_their_closed_form() -> None:
    # Seen rows all have margin m, watched ones N(0, m²): noise of size s moves both by s·n·ε.
    # κ = 0.9 allows 5 % flips: Φ(-m/(s n)) = 0.05 and arctan(s n/m)/π = 0.05, so that
    # τ(watched)/τ(seen) = tan(0.05 π)·1.6449 = 0.2605, and no less: two classes are the hard case.
    sign_N = 2.0 * (torch.arange(4000) % 2) - 1.0
    seen = rows_with_margins("seen", sign_N)
    watched = rows_with_margins("watched", normal(stream_key(0, "margins"), (4000,)))
    found = ratio_of(watched, seen)
    expected = tan(0.05 * pi) * 1.644854
    assert abs(found.value / expected - 1.0) < 3.0 * found.log_standard_error
    assert found.log_standard_error < 0.06


def confident(name: str, labels_N: Tensor, lead: float) -> HeadInputs:
    """Ten classes, one feature each, the answer ahead by about `lead`."""
    features_ND = 5.0 + 0.1 * normal(stream_key(0, name), (len(labels_N), 10))
    features_ND[torch.arange(len(labels_N)), labels_N] += lead
    return HeadInputs(features_ND=features_ND, head=Head(weight_CD=torch.eye(10)))


def test_a_majority_class_does_not_hide_a_random_minority() -> None:
    is_rare_N = uniform(stream_key(0, "rare"), (2000,)) < 0.07
    drawn_N = 1 + integers(stream_key(0, "which"), 9, (2000,))
    labels_N = torch.where(is_rare_N, drawn_N, 0)
    seen = confident("seen", labels_N, 10.0)
    weak = confident("weak", labels_N, 0.3)
    features_ND = torch.where(is_rare_N[:, None], weak.features_ND, seen.features_ND)
    watched = replace(seen, features_ND=features_ND)
    assert ratio_of(watched, seen).value < 0.33
    # Plain agreement would have been taken in: nine in ten answers hold far beyond that.
    of_seen = tolerance(head_answers(seen, SETTINGS), 10, SETTINGS)
    answers = head_answers(watched, SETTINGS)
    assert float((answers(of_seen.value / 2) == answers(0.0)[0]).double().mean()) > 0.9


def test_classes_that_are_never_the_answer_do_not_matter() -> None:
    labels_N = torch.arange(1000) % 10
    seen, watched = confident("seen", labels_N, 8.0), confident("weak", labels_N, 1.0)
    few = ratio_of(watched, seen)
    bias_C = torch.cat([torch.zeros(10), torch.full((60,), -9.0)])
    wide = Head(weight_CD=torch.cat([torch.eye(10), torch.zeros(60, 10)]), bias_C=bias_C)
    many = ratio_of(replace(watched, head=wide), replace(seen, head=wide))
    error = sqrt(few.log_standard_error**2 + many.log_standard_error**2)
    assert abs(many.value / few.value - 1.0) < 3.0 * error


def test_a_stable_wrong_rule_is_not_seen() -> None:
    # A limit, not a success: no label takes part, so a rule that is wrong on the watched set but
    # as firm there as on the seen one has a ratio near one.
    labels_N = torch.arange(1000) % 10
    found = ratio_of(confident("other", labels_N, 8.0), confident("seen", labels_N, 8.0))
    low, high = found.interval(3.0)
    assert low < 1.0 < high


def test_batch_norm_and_dropout_are_read_in_evaluation_mode_and_left_alone() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)
    ).train()
    x = normal(stream_key(0, "x"), (300, 6))
    before = {name: values.clone() for name, values in model.state_dict().items()}
    first, second = head_inputs(model, x), head_inputs(model, x)
    assert torch.equal(first.features_ND, second.features_ND)
    assert all(torch.equal(before[name], values) for name, values in model.state_dict().items())
    assert all(module.training for module in model.modules())


def test_half_precision_changes_the_ratio_by_less_than_its_error() -> None:
    labels_N = torch.arange(1000) % 10
    seen, watched = confident("seen", labels_N, 8.0), confident("weak", labels_N, 1.0)

    def rounded(inputs: HeadInputs) -> HeadInputs:
        return replace(inputs, features_ND=inputs.features_ND.bfloat16().float())

    exact = ratio_of(watched, seen)
    rough = ratio_of(rounded(watched), rounded(seen))
    assert abs(rough.value / exact.value - 1.0) < exact.log_standard_error
