"""Noise tolerance against a closed form, brute force, and what must not matter to it."""

from dataclasses import replace
from math import isnan, pi, sqrt, tan

import pytest
import torch
from torch import Tensor, nn

from epigrok.monitor import (
    ToleranceSettings,
    head_answers,
    network_answers,
    tolerance,
    tolerance_ratio,
)
from epigrok.monitor.noise import row_tolerances
from epigrok.monitor.tolerance import chance_corrected_agreement
from epigrok.posteriors import Head, HeadInputs, head_inputs
from epigrok.random_streams import integers, normal, stream_key

SETTINGS = ToleranceSettings()


def gaussian_rows(seed: int, num_rows: int, width: int) -> Tensor:
    return normal(stream_key(seed, "rows"), (num_rows, width))


def opposite_ones(width: int) -> Head:
    """Answers whether the inputs' sum is positive."""
    weight_CD = torch.ones(2, width)
    weight_CD[0] = -1.0
    return Head(weight_CD=weight_CD)


def random_inputs(seed: int, num_rows: int, num_classes: int = 7, width: int = 24) -> HeadInputs:
    weight_CD = normal(stream_key(seed, "weight"), (num_classes, width))
    features_ND = normal(stream_key(seed, "features"), (num_rows, width))
    features_ND = features_ND + 0.5 * weight_CD[torch.arange(num_rows) % num_classes]
    bias_C = normal(stream_key(seed, "bias"), (num_classes,))
    return HeadInputs(features_ND=features_ND, head=Head(weight_CD=weight_CD, bias_C=bias_C))


def tau(inputs: HeadInputs, settings: ToleranceSettings = SETTINGS) -> float:
    return tolerance(head_answers(inputs, settings), len(inputs.head.weight_CD), settings).value


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_a_head_with_gaussian_margins_has_the_tolerance_of_the_closed_form(level: float) -> None:
    # The difference of the logits is 2 Σx, its noise s√2‖x‖ε. In many dimensions Σx/‖x‖ is a
    # standard normal z, so P(flip) = E Φ(-√2|z|/s) = arctan(s/√2)/π, and κ = 1 - 2 P(flip) with
    # two equally common answers.
    inputs = HeadInputs(features_ND=gaussian_rows(0, 4000, 201), head=opposite_ones(201))
    settings = replace(SETTINGS, level=level, num_draws=64)
    measured = tolerance(head_answers(inputs, settings), 2, settings)
    expected = sqrt(2.0) * tan(pi * (1.0 - level) / 2.0)
    assert abs(measured.value / expected - 1.0) < 3.0 * measured.log_standard_error
    assert measured.log_standard_error < 0.06


def test_standard_errors_cover_the_closed_form_as_often_as_they_should() -> None:
    expected = sqrt(2.0) * tan(pi * 0.05)
    deviations = []
    for seed in range(200):
        inputs = HeadInputs(features_ND=gaussian_rows(seed, 256, 101), head=opposite_ones(101))
        settings = replace(SETTINGS, seed=seed)
        measured = tolerance(head_answers(inputs, settings), 2, settings)
        error = torch.tensor(measured.value / expected).log()
        deviations.append(float(error) / measured.log_standard_error)
    covered = sum(abs(deviation) < 2.0 for deviation in deviations) / len(deviations)
    # 0.95 of a normal; eight draws make the estimated error itself uncertain.
    assert 0.88 <= covered <= 0.99


def test_standard_error_of_the_ratio_covers_one_for_two_samples_of_one_population() -> None:
    deviations = []
    for seed in range(200):
        seen, watched = (
            HeadInputs(features_ND=rows, head=opposite_ones(101))
            for rows in gaussian_rows(seed, 512, 101).split(256)
        )
        settings = replace(SETTINGS, seed=seed)
        of_seen, of_watched = (
            tolerance(head_answers(inputs, settings), 2, settings) for inputs in (seen, watched)
        )
        ratio = tolerance_ratio(of_watched, of_seen)
        deviations.append(float(torch.tensor(ratio.value).log()) / ratio.log_standard_error)
    covered = sum(abs(deviation) < 2.0 for deviation in deviations) / len(deviations)
    assert 0.88 <= covered <= 0.99


def test_agreement_is_cohens_kappa_of_a_worked_example() -> None:
    clean_N = torch.tensor([0, 0, 0, 1, 1, 2])
    noisy_SN = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 2]])
    # p_o = 5/6; p_e = (3·2 + 2·3 + 1·1)/36 = 13/36. One answer for all is what chance gives.
    kappa_S = chance_corrected_agreement(clean_N, noisy_SN, 3)
    expected_S = torch.tensor([(5 / 6 - 13 / 36) / (23 / 36), 0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(kappa_S, expected_S)


def test_order_of_rows_does_not_matter() -> None:
    inputs = random_inputs(0, 300)
    shuffled = replace(inputs, features_ND=inputs.features_ND.flip(0))
    assert tau(shuffled) == tau(inputs)


def test_rescaled_units_do_not_matter() -> None:
    inputs = random_inputs(1, 300)
    scale_D = 2.0 ** integers(stream_key(1, "scale"), 9, (24,)).float()
    rescaled = HeadInputs(
        features_ND=inputs.features_ND * scale_D,
        head=replace(inputs.head, weight_CD=inputs.head.weight_CD / scale_D),
    )
    assert tau(rescaled) == tau(inputs)


def test_names_of_classes_do_not_matter() -> None:
    inputs = random_inputs(2, 1000)
    settings = replace(SETTINGS, num_draws=64)
    assert inputs.head.bias_C is not None
    relabelled = HeadInputs(
        features_ND=inputs.features_ND,
        head=Head(
            weight_CD=inputs.head.weight_CD.roll(3, dims=0), bias_C=inputs.head.bias_C.roll(3)
        ),
    )
    before, after = (
        tolerance(head_answers(which, settings), 7, settings) for which in (inputs, relabelled)
    )
    error = sqrt(2.0) * before.log_standard_error
    assert abs(after.value / before.value - 1.0) < 3.0 * error


def test_the_same_settings_give_the_same_number() -> None:
    assert tau(random_inputs(3, 200)) == tau(random_inputs(3, 200))
    assert tau(random_inputs(3, 200)) != tau(random_inputs(3, 200), replace(SETTINGS, seed=1))


def test_tolerance_of_a_row_is_where_brute_force_sees_its_answer_change() -> None:
    inputs = random_inputs(4, 80)
    settings = replace(SETTINGS, num_draws=3)
    answers = head_answers(inputs, settings)
    clean_N = answers(0.0)[0]
    scales_G = torch.logspace(-3, 3, 1501)
    holds_GSN = torch.stack([answers(float(scale)) == clean_N for scale in scales_G])
    # The first grid point at which the answer has changed; a change never comes back.
    first_SN = holds_GSN.sum(dim=0)
    assert torch.equal(first_SN, holds_GSN.cumprod(dim=0).sum(dim=0))
    index_N = first_SN.median(dim=0).values
    changes_N = index_N < len(scales_G)
    exact_N = row_tolerances(inputs, settings)
    assert bool(changes_N.any())
    upper_N = scales_G[index_N[changes_N]]
    lower_N = scales_G[(index_N[changes_N] - 1).clamp_min(0)]
    found_N = exact_N[changes_N]
    assert bool(((found_N <= upper_N * 1.0001) & (found_N >= lower_N * 0.9999)).all())


class Network(nn.Module):
    def __init__(self, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(6, width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, 4)
        for index, values in enumerate(self.parameters()):
            values.data = normal(stream_key(index, "network"), tuple(values.shape))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.dropout(self.first(inputs).relu()))


INPUTS = normal(stream_key(0, "inputs"), (400, 6))


def test_noise_on_the_head_of_a_network_is_the_same_through_either_door() -> None:
    model = Network()
    settings = replace(SETTINGS, num_draws=64)
    by_features = tolerance(head_answers(head_inputs(model, INPUTS), settings), 4, settings)
    only = ("head.weight", "head.bias")
    by_network = tolerance(network_answers(model, INPUTS, settings, only=only), 4, settings)
    error = sqrt(2.0) * by_features.log_standard_error
    assert abs(by_network.value / by_features.value - 1.0) < 3.0 * error


def test_whole_network_noise_ignores_rescaled_units_and_leaves_the_model_alone() -> None:
    model = Network()
    before = [values.clone() for values in model.parameters()]
    first = tolerance(network_answers(model, INPUTS, SETTINGS), 4, SETTINGS)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    scale_D = 2.0 ** integers(stream_key(2, "scale"), 7, (32,)).float()
    model.first.weight.data *= scale_D[:, None]
    model.first.bias.data *= scale_D
    model.head.weight.data /= scale_D
    assert tolerance(network_answers(model, INPUTS, SETTINGS), 4, SETTINGS).value == first.value
    assert first.value < tau(head_inputs(model, INPUTS))


def test_the_head_is_found_and_its_features_give_the_networks_logits() -> None:
    model = Network(dropout=0.5).train()
    found = head_inputs(model, INPUTS)
    assert model.training
    assert model.dropout.training
    torch.testing.assert_close(found.logits(), model.eval()(INPUTS))
    sequences = head_inputs(model, INPUTS.view(80, 5, 6))
    torch.testing.assert_close(sequences.features_ND, found.features_ND)


def test_training_on_leaves_what_was_read_as_it_was() -> None:
    model = Network()
    found = head_inputs(model, INPUTS)
    before = found.logits()
    with torch.no_grad():
        for values in model.parameters():
            values.add_(1.0)
    assert torch.equal(found.logits(), before)


def test_a_model_that_changes_its_logits_after_the_head_is_refused() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
    with pytest.raises(ValueError, match="last linear layer"):
        head_inputs(model, INPUTS)
    with pytest.raises(ValueError, match="no linear layer"):
        head_inputs(nn.Tanh(), INPUTS)


def unreadable(inputs: HeadInputs, settings: ToleranceSettings = SETTINGS) -> str:
    measured = tolerance(head_answers(inputs, settings), len(inputs.head.weight_CD), settings)
    assert measured.reason is not None
    assert isnan(measured.log_standard_error)
    return measured.reason


def test_what_cannot_be_read_says_why() -> None:
    inputs = random_inputs(5, 300)
    few = replace(inputs, features_ND=inputs.features_ND[:40])
    assert unreadable(few) == "40 rows, 64 are needed"
    biased = Head(weight_CD=inputs.head.weight_CD, bias_C=torch.tensor([60.0, 0, 0, 0, 0, 0, 0]))
    assert "get the same answer" in unreadable(replace(inputs, head=biased))
    broken = inputs.features_ND.clone()
    broken[3, 3] = torch.nan
    assert "not finite" in unreadable(replace(inputs, features_ND=broken))
    assert "survive" in unreadable(inputs, replace(SETTINGS, highest=1e-3))
    assert "already" in unreadable(inputs, replace(SETTINGS, lowest=10.0))


def test_a_ratio_of_something_unreadable_is_unreadable_for_the_same_reason() -> None:
    inputs = random_inputs(6, 300)
    readable = tolerance(head_answers(inputs, SETTINGS), 7, SETTINGS)
    few = replace(inputs, features_ND=inputs.features_ND[:40])
    unreadable_set = tolerance(head_answers(few, SETTINGS), 7, SETTINGS)
    ratio = tolerance_ratio(unreadable_set, readable)
    assert ratio.reason == "watched inputs: 40 rows, 64 are needed"
    assert tolerance_ratio(readable, unreadable_set).reason == (
        "seen inputs: 40 rows, 64 are needed"
    )


def test_a_set_that_is_answered_at_random_tolerates_less_than_one_with_margins() -> None:
    seen = random_inputs(7, 500)
    weak = replace(seen, features_ND=normal(stream_key(8, "features"), (500, 24)))
    of_seen, of_weak = (
        tolerance(head_answers(inputs, SETTINGS), 7, SETTINGS) for inputs in (seen, weak)
    )
    ratio = tolerance_ratio(of_weak, of_seen)
    low, high = ratio.interval()
    assert low < ratio.value < high < 0.8


@pytest.mark.parametrize(
    "wrong", [{"level": 1.0}, {"lowest": 2.0, "highest": 1.0}, {"num_draws": 1}]
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"level|noise|draws"):
        replace(SETTINGS, **wrong)
