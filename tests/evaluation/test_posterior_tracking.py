"""Posteriors at the present state of training, and the data they see."""

from dataclasses import replace

import pytest
import torch
from small_tasks import family_of, one_parameter_run

from epigrok.config import MuonConfig
from epigrok.evaluation import EvaluationSet, evaluation_sets, tracked_posteriors
from epigrok.model import Network, build_model
from epigrok.posteriors import LastLayerLaplace
from epigrok.tasks import Batch

CONFIG = one_parameter_run(optim=MuonConfig(weight_decay=0.3, adamw_weight_decay=0.7))


@pytest.fixture(scope="module")
def model() -> Network:
    return build_model(CONFIG)


@pytest.fixture(scope="module")
def fit_set() -> EvaluationSet:
    return evaluation_sets(CONFIG, family_of(CONFIG))["id_train"]


def laplace(model: Network, fit_set: EvaluationSet) -> LastLayerLaplace:
    (posterior,) = tracked_posteriors(CONFIG, model, fit_set, names=("laplace",))
    assert isinstance(posterior, LastLayerLaplace)
    return posterior


def test_names_default_to_those_of_the_run(model: Network, fit_set: EvaluationSet) -> None:
    found = tracked_posteriors(CONFIG, model, fit_set)
    assert [posterior.name for posterior in found] == ["point", "weight-noise:0.1"]


def test_the_prior_is_the_decay_of_whoever_trains_the_head(
    model: Network, fit_set: EvaluationSet
) -> None:
    assert laplace(model, fit_set).prior_precision == 0.7


def test_tokens_that_ask_nothing_change_nothing(model: Network, fit_set: EvaluationSet) -> None:
    batch = fit_set.batch
    silent = replace(batch, is_scored_BT=torch.zeros_like(batch.is_scored_BT))
    parts = [(b.tokens_BL, b.answers_BT, b.is_scored_BT) for b in (batch, silent)]
    doubled = EvaluationSet(Batch(*map(torch.cat, zip(*parts, strict=True))), None)
    first, second = laplace(model, fit_set), laplace(model, doubled)
    torch.testing.assert_close(first.precision_CD, second.precision_CD)
    assert first.num_answers == second.num_answers == batch.is_scored_BT.sum()


def test_how_sequences_are_cut_changes_nothing(
    model: Network, fit_set: EvaluationSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = laplace(model, fit_set)
    monkeypatch.setattr("epigrok.evaluation.evaluator.SEQUENCES_PER_CHUNK", {"cpu": 5})
    torch.testing.assert_close(laplace(model, fit_set).precision_CD, whole.precision_CD)
