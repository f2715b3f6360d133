"""Every posterior on every split: which sequences, in which pieces, and that nothing is left."""

from dataclasses import replace

import pytest
import torch
from small_tasks import family_of, one_parameter_run, two_parameter_run

from epigrok.config import ClassicTask, MLPConfig, RunConfig, preset
from epigrok.config.splits import ID_VAL, OOD_VAL
from epigrok.errors import UserError
from epigrok.evaluation import (
    EvaluationSet,
    evaluate,
    evaluation_precision,
    evaluation_sets,
    score_posterior,
)
from epigrok.evaluation.evaluator import sequences_used
from epigrok.model import build_model
from epigrok.posteriors import Ensemble, Point, WeightNoise

RUNS = {
    "classic": replace(
        preset("classic"),
        task=ClassicTask(modulus=7),
        model=MLPConfig(embedding_width=4, hidden_width=8),
        batch_size=8,
    ),
    "one parameter": one_parameter_run(),
    "two parameters": two_parameter_run(),
}


@pytest.fixture(params=RUNS)
def config(request: pytest.FixtureRequest) -> RunConfig:
    return RUNS[request.param]


def sets_of(config: RunConfig) -> dict[str, EvaluationSet]:
    return evaluation_sets(config, family_of(config))


def test_two_evaluations_of_the_same_weights_are_identical(config: RunConfig) -> None:
    model = build_model(config)
    first, again = (
        evaluate(model, [Point.of(model)], sets_of(config), num_samples=16) for _ in range(2)
    )
    assert [row.summary for row in first] == [row.summary for row in again]
    assert [row.split for row in first] == [split.name for split in config.task.splits]
    assert all(row.num_samples == 1 for row in first)
    assert model.training


def test_a_part_in_evaluation_mode_stays_in_it() -> None:
    config = RUNS["one parameter"]
    model = build_model(config)
    frozen = next(model.children()).eval()
    evaluate(model, [Point.of(model)], sets_of(config), num_samples=1)
    assert model.training
    assert not frozen.training


def test_how_sequences_are_cut_changes_no_score(
    config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, sets = build_model(config), sets_of(config)
    whole = score_posterior(model, WeightNoise.relative(model, 0.3), sets, 3)
    monkeypatch.setattr("epigrok.evaluation.evaluator.SEQUENCES_PER_CHUNK", {"cpu": 7})
    cut = score_posterior(model, WeightNoise.relative(model, 0.3), sets, 3)
    for split in sets:
        assert cut[split].summary() == pytest.approx(whole[split].summary(), rel=1e-4, abs=1e-9)


def test_a_split_scores_the_same_alone_and_among_others(config: RunConfig) -> None:
    model, sets = build_model(config), sets_of(config)
    together = score_posterior(model, Point.of(model), sets, 1)
    for split, rows in sets.items():
        alone = score_posterior(model, Point.of(model), {split: rows}, 1)[split]
        assert alone.summary() == pytest.approx(together[split].summary(), rel=1e-5)


def test_sampled_posteriors_take_the_first_sequences_only() -> None:
    config = RUNS["two parameters"]
    model, sets = build_model(config), sets_of(config)
    used = sequences_used(WeightNoise.relative(model, 0.3), sets, 10)
    for split, rows in sets.items():
        assert torch.equal(used[split].batch.tokens_BL, rows.batch.tokens_BL[:10])
    assert sequences_used(Point.of(model), sets, 10)["id_val"].batch.tokens_BL.shape[0] > 10
    everything = sequences_used(WeightNoise.relative(model, 0.3), sets, None)
    assert torch.equal(everything["id_val"].batch.tokens_BL, sets["id_val"].batch.tokens_BL)


def test_an_ensemble_is_scored_with_all_its_members() -> None:
    config = RUNS["one parameter"]
    models = [build_model(replace(config, run_seed=seed)) for seed in range(3)]
    rows = evaluate(models[0], [Ensemble.of(models)], sets_of(config), num_samples=2)
    assert {row.num_samples for row in rows} == {3}


def test_some_splits_and_shorter_contexts_can_be_asked_for() -> None:
    config = RUNS["two parameters"]
    sets = evaluation_sets(config, family_of(config), num_examples=2, splits=(OOD_VAL, ID_VAL))
    assert list(sets) == ["ood_val", "id_val"]
    assert sets["id_val"].batch.answers_BT.shape[1] == 2


def test_predictions_that_are_not_finite_are_refused_by_name() -> None:
    config = RUNS["one parameter"]
    model = build_model(config)
    with pytest.raises(UserError, match=r"'weight-noise:1e\+30' are not finite"):
        score_posterior(model, WeightNoise.relative(model, 1e30), sets_of(config), 1)


def test_a_cpu_multiplies_in_full_and_the_setting_is_left_alone() -> None:
    before = torch.get_float32_matmul_precision()
    with evaluation_precision(RUNS["classic"], torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(("asked", "expected"), [("tf32", "high"), ("float32", "highest")])
def test_a_gpu_multiplies_as_asked_and_the_setting_comes_back(asked: str, expected: str) -> None:
    evaluation = replace(RUNS["classic"].evaluation, matmul_precision=asked)  # type: ignore[arg-type]
    config = replace(RUNS["classic"], evaluation=evaluation)
    before = torch.get_float32_matmul_precision()

    def fail_within() -> None:
        with evaluation_precision(config, torch.device("cuda")):
            assert torch.get_float32_matmul_precision() == expected
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        fail_within()
    assert torch.get_float32_matmul_precision() == before
