"""What every posterior promises: pure samples, untouched weights, honest names."""

import dataclasses

import pytest
import torch

from epigrok.config import RunConfig, preset
from epigrok.errors import UserError
from epigrok.evaluation import (
    EvaluationSet,
    evaluate,
    evaluation_sets,
    score_posterior,
    tracked_posteriors,
)
from epigrok.experiments.store_queries import FACTS
from epigrok.model import Network
from epigrok.posteriors import Ensemble, Posterior, WeightNoise, logits_of, sampled_logits
from epigrok.tasks import build_family, sample_world
from epigrok.training import TrainState, initial_state, training_steps

NAMES = (
    "point",
    "laplace",
    "laplace:evidence",
    "laplace:10",
    "laplace-exact",
    "laplace-probit",
    "weight-noise:0.1",
    "ivon",
    "ivon-isotropic",
)


def trained() -> tuple[RunConfig, TrainState, dict[str, EvaluationSet]]:
    config = dataclasses.replace(preset("icl-tiny-ivon"), batch_size=32)
    family = build_family(config, sample_world(config.task, 0))
    state = initial_state(config)
    for record in training_steps(state, family, config):
        if record.step == 5:
            break
    sets = evaluation_sets(config, family)
    return config, state, {split: rows.first(30) for split, rows in sets.items()}


@pytest.fixture(scope="module")
def world() -> tuple[RunConfig, TrainState, dict[str, EvaluationSet]]:
    return trained()


@pytest.fixture(scope="module", params=[*NAMES, "ensemble"])
def posterior(
    request: pytest.FixtureRequest, world: tuple[RunConfig, TrainState, dict[str, EvaluationSet]]
) -> Posterior:
    config, state, sets = world
    if request.param == "ensemble":
        others = [initial_state(dataclasses.replace(config, run_seed=s)).model for s in (1, 2)]
        return Ensemble.of([state.model, *others])
    (built,) = tracked_posteriors(
        config, state.model, sets["id_train"], state.ivon_posterior(), (request.param,)
    )
    assert built.name == request.param
    return built


def weights_of(model: Network) -> list[torch.Tensor]:
    return [weights.detach().clone() for weights in model.parameters()]


def test_samples_are_pure_functions_of_the_index(posterior: Posterior) -> None:
    first, again = posterior.sample(0), posterior.sample(0)
    assert all(torch.equal(first[name], again[name]) for name in first)
    if posterior.max_samples != 1:
        other = posterior.sample(1)
        assert any(not torch.equal(first[name], other[name]) for name in first)


def test_a_sample_predicts_what_evaluation_scores(
    posterior: Posterior, world: tuple[RunConfig, TrainState, dict[str, EvaluationSet]]
) -> None:
    if posterior.name == "laplace-probit":
        pytest.skip("a closed form, not a distribution to sample: its logits are damped")
    _, state, sets = world
    tokens = sets["id_val"].batch.tokens_BL
    drawn = [next(logits) for logits in sampled_logits(state.model, posterior, [tokens], 2)]
    for index, expected in enumerate(drawn[: posterior.max_samples]):
        found = logits_of(state.model, posterior.sample(index), tokens)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_predicting_leaves_the_live_weights_alone(
    posterior: Posterior, world: tuple[RunConfig, TrainState, dict[str, EvaluationSet]]
) -> None:
    _, state, sets = world
    before = weights_of(state.model)
    scores = score_posterior(state.model, posterior, sets, num_samples=3)
    assert all(torch.equal(a, b) for a, b in zip(before, weights_of(state.model)))
    again = score_posterior(state.model, posterior, sets, num_samples=3)
    for split in sets:
        summary = scores[split].summary()
        assert summary == again[split].summary()
        assert summary["total"] == pytest.approx(summary["aleatoric"] + summary["epistemic"])
        if posterior.max_samples == 1:
            assert summary["epistemic"] == 0.0
        else:
            assert 0.0 < summary["epistemic"] <= torch.tensor(3.0).log().item()


def test_rows_of_laplace_posteriors_tell_what_they_were_fitted_to(
    posterior: Posterior, world: tuple[RunConfig, TrainState, dict[str, EvaluationSet]]
) -> None:
    config, state, sets = world
    for row in evaluate(state.model, [posterior], sets, num_samples=2):
        if not posterior.name.startswith("laplace"):
            assert not row.facts
            continue
        assert set(row.facts) == set(FACTS["metrics"])
        assert row.facts["num_fit_answers"] == sets["id_train"].batch.is_scored_BT.sum()
        if posterior.name in ("laplace", "laplace-exact", "laplace-probit"):
            assert row.facts["prior_precision"] == config.optim.weight_decay


def test_an_exception_while_predicting_leaves_the_live_weights_alone(
    posterior: Posterior,
    world: tuple[RunConfig, TrainState, dict[str, EvaluationSet]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, state, sets = world
    before = weights_of(state.model)
    calls = {"number": 0}

    def fail(*_: object) -> None:
        calls["number"] += 1
        raise RuntimeError("boom")

    monkeypatch.setattr("epigrok.evaluation.evaluator.ScoreStream.add", fail)
    with pytest.raises(RuntimeError, match="boom"):
        score_posterior(state.model, posterior, sets, num_samples=3)
    assert calls["number"] == 1
    assert all(torch.equal(a, b) for a, b in zip(before, weights_of(state.model)))
    assert state.model.training


def test_further_training_does_not_change_a_posterior() -> None:
    config, state, sets = trained()
    family = build_family(config, sample_world(config.task, 0))
    posteriors = tracked_posteriors(
        config, state.model, sets["id_train"], state.ivon_posterior(), NAMES
    )
    before = [posterior.sample(0) for posterior in posteriors]
    for record in training_steps(state, family, config):
        if record.step == 8:
            break
    for posterior, sample in zip(posteriors, before):
        now = posterior.sample(0)
        assert all(torch.equal(sample[name], now[name]) for name in sample)


def test_samples_have_the_type_of_the_weights() -> None:
    _, state, _ = trained()
    model = state.model.bfloat16()
    sample = WeightNoise.relative(model, 0.1).sample(0)
    assert {weights.dtype for weights in sample.values()} == {torch.bfloat16}


def test_noise_scales_share_their_random_numbers(
    world: tuple[RunConfig, TrainState, dict[str, EvaluationSet]],
) -> None:
    model = world[1].model
    small, large = (WeightNoise.relative(model, scale).sample(4) for scale in (0.01, 0.1))
    name = "blocks.0.query.weight"
    weights = dict(model.named_parameters())[name]
    torch.testing.assert_close(
        10 * (small[name] - weights), large[name] - weights, rtol=1e-3, atol=1e-5
    )
    deviation = (large[name] - weights).std() / weights.std()
    assert deviation.item() == pytest.approx(0.1, rel=0.05)
    assert torch.equal(large["norm.weight"], dict(model.named_parameters())["norm.weight"])


def test_ensembles_need_members_of_one_shape() -> None:
    with pytest.raises(UserError, match="same architecture"):
        Ensemble.of([])
    models = [initial_state(preset(name)).model for name in ("classic", "icl-tiny")]
    with pytest.raises(UserError, match="same architecture"):
        Ensemble.of(models)


@pytest.mark.parametrize(
    "name", ["laplase", "weight-noise", "weight-noise:x", "weight-noise:-1", "point:3", "laplace:0"]
)
def test_names_that_mean_nothing_are_refused(name: str) -> None:
    config = preset("classic-ivon")
    with pytest.raises(UserError, match=name.split(":", maxsplit=1)[0]):
        dataclasses.replace(config.evaluation, posteriors=(name,))


def test_ivon_posteriors_need_an_ivon_run() -> None:
    config = preset("classic")
    evaluation = dataclasses.replace(config.evaluation, posteriors=("ivon",))
    with pytest.raises(UserError, match="trained with IVON"):
        dataclasses.replace(config, evaluation=evaluation)
