"""τ as a quantile of flips: the closed form, the search it replaces, and its standard error."""

from dataclasses import replace
from math import isnan, log, pi, sqrt, tan

import pytest
import torch

from epigrok.monitor import ToleranceSettings, head_answers, tolerance, tolerance_ratio
from epigrok.monitor.quantile import flip_tolerance, head_tolerance
from epigrok.posteriors import Head, HeadInputs
from epigrok.random_streams import normal, stream_key

SETTINGS = ToleranceSettings()


def two_classes(seed: int, num_rows: int, width: int) -> HeadInputs:
    """Whether the inputs' sum is positive."""
    weight_CD = torch.ones(2, width)
    weight_CD[0] = -1.0
    features_ND = normal(stream_key(seed, "rows"), (num_rows, width))
    return HeadInputs(features_ND=features_ND, head=Head(weight_CD=weight_CD))


def many_classes(seed: int, num_rows: int) -> HeadInputs:
    weight_CD = normal(stream_key(seed, "weight"), (20, 48))
    features_ND = normal(stream_key(seed, "features"), (num_rows, 48))
    features_ND = features_ND + 0.5 * weight_CD[torch.arange(num_rows) % 20]
    bias_C = normal(stream_key(seed, "bias"), (20,))
    return HeadInputs(features_ND=features_ND, head=Head(weight_CD=weight_CD, bias_C=bias_C))


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_gaussian_margins_have_the_tolerance_of_the_closed_form(level: float) -> None:
    # P(flip) = arctan(s/√2)/π and κ = 1 - 2 P(flip): see test_tolerance.py.
    settings = replace(SETTINGS, level=level, num_draws=64)
    measured = head_tolerance(two_classes(0, 4000, 201), settings)
    expected = sqrt(2.0) * tan(pi * (1.0 - level) / 2.0)
    assert abs(measured.value / expected - 1.0) < 3.0 * measured.log_standard_error
    assert measured.log_standard_error < 0.06


def test_it_is_the_largest_noise_at_which_agreement_holds() -> None:
    inputs = many_classes(0, 300)
    tau = head_tolerance(inputs, SETTINGS).value
    answers = head_answers(inputs, SETTINGS)
    clean_N = answers(0.0)[0]
    chance = float((torch.bincount(clean_N).double() / 300).square().sum())

    def kappa(scale: float) -> float:
        agreement = float((answers(scale) == clean_N).double().mean())
        return (agreement - chance) / (1.0 - chance)

    assert kappa(0.999 * tau) >= 0.9 > kappa(1.001 * tau)


def test_with_many_classes_it_is_close_to_the_search_with_full_cohens_kappa() -> None:
    for seed in range(5):
        inputs = many_classes(seed, 300)
        searched = tolerance(head_answers(inputs, SETTINGS), 20, SETTINGS)
        found = head_tolerance(inputs, SETTINGS)
        assert abs(log(found.value / searched.value)) < 0.5 * searched.log_standard_error
        assert 0.8 < found.log_standard_error / searched.log_standard_error < 1.25


def test_standard_error_of_the_ratio_covers_one_for_two_samples_of_one_population() -> None:
    deviations = []
    for seed in range(200):
        whole = two_classes(seed, 512, 101)
        settings = replace(SETTINGS, seed=seed)
        of_seen, of_watched = (
            head_tolerance(replace(whole, features_ND=half), settings)
            for half in whole.features_ND.split(256)
        )
        ratio = tolerance_ratio(of_watched, of_seen)
        deviations.append(log(ratio.value) / ratio.log_standard_error)
    covered = sum(abs(deviation) < 2.0 for deviation in deviations) / len(deviations)
    assert 0.88 <= covered <= 0.99


def test_what_cannot_be_read_says_why() -> None:
    inputs = many_classes(1, 300)

    def reason(changed: HeadInputs, settings: ToleranceSettings = SETTINGS) -> str | None:
        measured = head_tolerance(changed, settings)
        assert isnan(measured.log_standard_error)
        return measured.reason

    assert reason(replace(inputs, features_ND=inputs.features_ND[:40])) == "40 rows, 64 are needed"
    assert reason(replace(inputs, features_ND=inputs.features_ND[:0])) == "0 rows, 64 are needed"
    broken = inputs.features_ND.clone()
    broken[3, 3] = torch.nan
    assert reason(replace(inputs, features_ND=broken)) == "outputs are not finite"
    assert "survive" in str(reason(inputs, replace(SETTINGS, highest=1e-3)))
    assert "already" in str(reason(inputs, replace(SETTINGS, lowest=10.0)))
    same = Head(weight_CD=inputs.head.weight_CD, bias_C=torch.tensor([900.0] + 19 * [0.0]))
    assert "get the same answer" in str(reason(replace(inputs, head=same)))


def test_answers_that_all_flip_at_one_noise_have_that_tolerance_and_no_error_of_rows() -> None:
    answers_N = torch.arange(100) % 4
    found = flip_tolerance(answers_N, torch.full((8, 100), 0.7), SETTINGS)
    assert found.value == pytest.approx(0.7)
