"""What every posterior promises: pure samples, untouched weights, facts as declared."""

from copy import deepcopy
from dataclasses import replace
from math import log
from typing import Any

import pytest
import torch
from small_tasks import train_until
from trained_run import Trained

from epigrok.evaluation import evaluate, score_posterior
from epigrok.model import Network
from epigrok.posteriors import (
    Ensemble,
    Posterior,
    Sample,
    kind_of,
    logits_of,
    posterior_kinds,
    sampled_logits,
)
from epigrok.posteriors.head_gaussian import HeadSample
from epigrok.training import initial_state

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


def test_every_kind_is_among_those_tested_here() -> None:
    own = {name for name, kind in posterior_kinds().items() if is_built_in(kind.build)}
    assert own == {name.partition(":")[0] for name in NAMES}


def is_built_in(build: Any) -> bool:
    return build.__module__.startswith("epigrok.")


@pytest.fixture(scope="module", params=[*NAMES, "ensemble"])
def posterior(request: pytest.FixtureRequest, trained: Trained) -> Posterior:
    if request.param == "ensemble":
        seeds = (replace(trained.config, run_seed=seed) for seed in (1, 2))
        return Ensemble.of([trained.model, *(initial_state(config).model for config in seeds)])
    (built,) = trained.fitted(request.param)
    assert built.name == request.param
    return built


def weights_of(model: Network) -> list[torch.Tensor]:
    return [weights.detach().clone() for weights in model.parameters()]


def test_it_is_a_posterior(posterior: Posterior) -> None:
    assert isinstance(posterior, Posterior)
    if posterior.name != "ensemble":
        is_point = kind_of(posterior.name).role == "point"
        assert posterior.max_samples == (1 if is_point else None)


def tensors_of(sample: Sample) -> dict[str, torch.Tensor]:
    return {"head": sample.head.matrix} if isinstance(sample, HeadSample) else dict(sample)


def are_equal(first: Sample, second: Sample) -> bool:
    ours, theirs = tensors_of(first), tensors_of(second)
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_samples_are_pure_functions_of_the_index(posterior: Posterior) -> None:
    assert are_equal(posterior.sample(0), posterior.sample(0))
    if posterior.max_samples != 1:
        assert not are_equal(posterior.sample(0), posterior.sample(1))


def test_its_description_fits_on_a_line(posterior: Posterior) -> None:
    assert len(repr(posterior)) < 200


def test_a_sample_predicts_what_evaluation_scores(posterior: Posterior, trained: Trained) -> None:
    if posterior.name == "laplace-probit":
        pytest.skip("a closed form, not a distribution to sample: its logits are damped")
    tokens = trained.sets["id_val"].batch.tokens_BL
    drawn = [next(logits) for logits in sampled_logits(trained.model, posterior, [tokens], 2)]
    for index, expected in enumerate(drawn[: posterior.max_samples]):
        found = logits_of(trained.model, posterior.sample(index), tokens)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_predicting_leaves_the_live_weights_alone(posterior: Posterior, trained: Trained) -> None:
    model, sets = trained.model, trained.sets
    before = weights_of(model)
    scores = score_posterior(model, posterior, sets, num_samples=3)
    assert all(torch.equal(a, b) for a, b in zip(before, weights_of(model), strict=True))
    again = score_posterior(model, posterior, sets, num_samples=3)
    for split in sets:
        summary = scores[split].summary()
        assert summary == again[split].summary()
        assert summary["total"] == pytest.approx(summary["aleatoric"] + summary["epistemic"])
        if posterior.max_samples == 1:
            assert summary["epistemic"] == 0.0
        else:
            assert 0.0 < summary["epistemic"] <= log(3)


def test_rows_have_the_facts_that_their_kind_declares(
    posterior: Posterior, trained: Trained
) -> None:
    declared = set()
    if posterior.name != "ensemble":
        declared = {column.name for column in kind_of(posterior.name).facts}
    for row in evaluate(trained.model, [posterior], trained.sets, num_samples=2):
        assert set(row.facts) == declared
        if posterior.name.startswith("laplace"):
            num_asked = trained.sets["id_train"].batch.is_scored_BT.sum()
            assert row.facts["num_fit_answers"] == num_asked
        if posterior.name in ("laplace", "laplace-exact", "laplace-probit"):
            assert row.facts["prior_precision"] == trained.config.optim.weight_decay


def test_an_exception_while_predicting_leaves_the_live_weights_alone(
    posterior: Posterior, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights_of(trained.model)
    calls = []

    def fail(*_: object) -> None:
        calls.append(1)
        raise RuntimeError("boom")

    monkeypatch.setattr("epigrok.evaluation.evaluator.ScoreStream.add", fail)
    with pytest.raises(RuntimeError, match="boom"):
        score_posterior(trained.model, posterior, trained.sets, num_samples=3)
    assert len(calls) == 1
    assert all(torch.equal(a, b) for a, b in zip(before, weights_of(trained.model), strict=True))
    assert trained.model.training


def test_further_training_does_not_change_a_posterior(trained_anew: Trained) -> None:
    posteriors = trained_anew.fitted(*NAMES)
    before = [deepcopy(posterior.sample(0)) for posterior in posteriors]
    head = trained_anew.model.head_weight.detach().clone()
    train_until(trained_anew.state, trained_anew.config, 6)
    assert not torch.equal(trained_anew.model.head_weight, head)
    for posterior, sample in zip(posteriors, before, strict=True):
        assert are_equal(sample, posterior.sample(0))
