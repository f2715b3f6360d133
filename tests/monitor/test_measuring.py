"""All sets of a look at once: the same numbers as one by one, in nats, for heads of any size."""

from math import isnan, log

import pytest
import torch
from torch import nn

import epigrok.monitor.noise
from epigrok.errors import UserError
from epigrok.monitor import SEEN, ToleranceSettings
from epigrok.monitor.measuring import HeadDraws, Mean, measure, measure_network, mutual_information
from epigrok.monitor.noise import NoisyNetwork, logit_noise
from epigrok.monitor.quantile import head_tolerance
from epigrok.monitor.sets.set_rows import ModelCall, SetRows
from epigrok.monitor.sets.taking import taken
from epigrok.posteriors import Head, HeadInputs
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import decompose

SETTINGS = ToleranceSettings()
WATCHED = "held out"


def sets(scale: float = 1.0) -> dict[str, HeadInputs]:
    weight_CD = scale * normal(stream_key(0, "weight"), (12, 20))
    head = Head(weight_CD=weight_CD, bias_C=normal(stream_key(0, "bias"), (12,)))
    names = {SEEN: 200, WATCHED: 150}
    return {
        name: HeadInputs(features_ND=normal(stream_key(0, name), (number, 20)), head=head)
        for name, number in names.items()
    }


def test_tolerances_are_those_of_each_set_alone() -> None:
    inputs = sets()
    found = measure(inputs, SETTINGS)
    for name, part in inputs.items():
        alone = head_tolerance(part, SETTINGS)
        assert found[name].tolerance.value == pytest.approx(alone.value, rel=1e-4)
        assert found[name].num_rows == len(part.features_ND)


def test_uncertainties_are_those_of_the_exact_decomposition() -> None:
    inputs = sets()
    found = measure(inputs, SETTINGS)
    for name, part in inputs.items():
        probs_NC = part.logits().double().softmax(dim=1)
        entropy_N = -(probs_NC * probs_NC.log()).sum(dim=1)
        assert found[name].entropy.value == pytest.approx(float(entropy_N.mean()), abs=1e-5)
        confidence_N = probs_NC.amax(dim=1)
        assert found[name].confidence.value == pytest.approx(float(confidence_N.mean()), abs=1e-5)
        error = float(confidence_N.std()) / len(confidence_N) ** 0.5
        assert found[name].confidence.standard_error == pytest.approx(error, rel=1e-4)
        scale = found[SEEN].tolerance.value
        noisy_SNC = part.logits() + scale * logit_noise(part, SETTINGS)
        exact = decompose(noisy_SNC.double().softmax(dim=-1)).epistemic.mean()
        assert found[name].calibrated_epistemic.value == pytest.approx(float(exact), abs=1e-5)


def test_predictions_that_contradict_each_other_have_log_two() -> None:
    certain = torch.tensor([[[90.0, 0.0]], [[0.0, 90.0]]])
    assert float(mutual_information([certain])) == pytest.approx(log(2.0), abs=1e-6)
    assert float(mutual_information([certain[:1], certain[:1]])) == pytest.approx(0.0, abs=1e-6)


def test_a_head_too_large_to_keep_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = sets()
    whole = measure(inputs, SETTINGS, HeadDraws(SETTINGS))

    def one(settings: ToleranceSettings, numbers_per_draw: int) -> int:
        return 1

    monkeypatch.setattr(epigrok.monitor.noise, "draws_at_a_time", one)
    monkeypatch.setattr(epigrok.monitor.measuring, "draws_at_a_time", one)
    parts = measure(inputs, SETTINGS, HeadDraws(SETTINGS))
    for name in inputs:
        assert parts[name].tolerance.value == pytest.approx(whole[name].tolerance.value, rel=1e-4)
        assert parts[name].calibrated_epistemic.value == pytest.approx(
            whole[name].calibrated_epistemic.value, abs=1e-5
        )


def test_kept_draws_are_the_draws_and_follow_a_head_of_another_shape() -> None:
    draws, inputs = HeadDraws(SETTINGS), sets()
    kept = draws.of(inputs[SEEN].head)
    assert kept is draws.of(inputs[SEEN].head)
    with_kept, without = measure(inputs, SETTINGS, draws), measure(inputs, SETTINGS)
    assert with_kept[WATCHED].tolerance.value == without[WATCHED].tolerance.value
    assert with_kept[WATCHED].calibrated_epistemic == without[WATCHED].calibrated_epistemic
    other = Head(weight_CD=torch.ones(3, 4))
    found = draws.of(other)
    assert found is not None
    assert found[0][0].shape == (SETTINGS.num_draws, 3, 4)


def test_chance_is_the_sum_of_squared_shares() -> None:
    head = Head(weight_CD=torch.eye(4))
    answers = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    one_hot = HeadInputs(features_ND=torch.eye(4)[answers], head=head)
    found = measure({SEEN: one_hot}, SETTINGS)[SEEN]
    assert found.chance == pytest.approx(0.6**2 + 0.3**2 + 0.1**2)


def test_weights_that_are_not_finite_leave_only_a_reason() -> None:
    found = measure(sets(scale=float("nan")), SETTINGS)[WATCHED]
    assert found.tolerance.reason == "outputs are not finite"
    assert isnan(found.calibrated_epistemic.value)


def test_a_mean_of_equal_values_has_no_error() -> None:
    assert Mean.of(torch.full((9,), 2.0)) == Mean(2.0, 0.0)


def network_sets(head: nn.Linear) -> tuple[dict[str, SetRows], ModelCall]:
    """The same inputs, for a network that is nothing but a head."""
    rows = {
        name: SetRows(taken(part.features_ND, name, 256), "all", 256)
        for name, part in sets().items()
    }
    return rows, ModelCall(model=head)


def test_noise_on_the_whole_of_a_network_that_is_only_a_head_is_noise_on_the_head() -> None:
    inputs = sets()
    head = nn.Linear(20, 12)
    with torch.no_grad():
        head.weight.copy_(inputs[SEEN].head.weight_CD)
        head.bias.copy_(inputs[SEEN].head.bias_C)
    rows, call = network_sets(head)
    by_head, by_network = measure(inputs, SETTINGS), measure_network(rows, call, SETTINGS)
    scale = by_network[SEEN].tolerance.value
    for name, found in by_network.items():
        # Other draws of the same noise: τ within its errors, and what has no noise exactly.
        apart = abs(log(found.tolerance.value / by_head[name].tolerance.value))
        assert apart < 3.0 * found.tolerance.log_standard_error
        assert found.answers == by_head[name].answers
        assert found.chance == by_head[name].chance
        assert found.entropy.value == pytest.approx(by_head[name].entropy.value, rel=1e-5)
        assert found.confidence.value == pytest.approx(by_head[name].confidence.value, rel=1e-5)
        noisy = NoisyNetwork(head, SETTINGS)
        draws = range(SETTINGS.num_draws)
        noisy_SNC = torch.stack([rows[name].noisy_logits(call, noisy, scale, d) for d in draws])
        exact = decompose(noisy_SNC.detach().double().softmax(dim=-1)).epistemic.mean()
        assert found.calibrated_epistemic.value == pytest.approx(float(exact), abs=1e-5)


def test_probabilities_are_refused() -> None:
    rows, _ = network_sets(nn.Linear(20, 12))
    model = nn.Sequential(nn.Linear(20, 12), nn.Softmax(dim=1))
    with pytest.raises(UserError, match="returns probabilities"):
        measure_network(rows, ModelCall(model=model), SETTINGS)
