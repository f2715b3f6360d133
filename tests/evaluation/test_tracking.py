"""What a run evaluates at its first step, in between, and at its last."""

from dataclasses import replace

import pytest
from small_tasks import family_of, one_parameter_run

from epigrok.config import RunConfig
from epigrok.evaluation import Evaluation, evaluation_sets, tracked_evaluation
from epigrok.evaluation.evaluator import EvaluationRow
from epigrok.model import build_model

CONFIG = one_parameter_run()
ROWS = {
    (split.name, posterior)
    for split in CONFIG.task.splits
    for posterior in CONFIG.evaluation.posteriors
}


def evaluated_at(step: int, config: RunConfig = CONFIG) -> Evaluation:
    sets = evaluation_sets(config, family_of(config))
    return tracked_evaluation(config, build_model(config), sets, None, step)


def keys(rows: list[EvaluationRow]) -> list[tuple[str, str]]:
    return sorted((row.split, row.posterior) for row in rows)


def samples_of(rows: list[EvaluationRow]) -> dict[str, int]:
    return {row.posterior: row.num_samples for row in rows}


def test_the_first_step_adds_the_exact_predictors() -> None:
    evaluation = evaluated_at(0)
    assert [name for name, _ in evaluation.tables()] == ["metrics", "exact"]
    assert keys(evaluation.metrics) == sorted(ROWS)
    assert keys(evaluation.exact) == sorted(
        (split.name, f"oracle-{kind}")
        for split in CONFIG.task.splits
        for kind in ("memorising", "generalising")
    )


def test_a_step_in_between_adds_to_the_curve_alone() -> None:
    evaluation = evaluated_at(5)
    assert [name for name, _ in evaluation.tables()] == ["metrics"]
    assert keys(evaluation.metrics) == sorted(ROWS)
    assert samples_of(evaluation.metrics) == {"point": 1, "weight-noise:0.1": 3}


def test_the_last_step_adds_every_posterior_with_more_samples() -> None:
    evaluation = evaluated_at(CONFIG.num_steps)
    assert [name for name, _ in evaluation.tables()] == ["metrics", "final"]
    assert keys(evaluation.metrics) == keys(evaluation.final) == sorted(ROWS)
    assert samples_of(evaluation.metrics) == {"point": 1, "weight-noise:0.1": 3}
    assert samples_of(evaluation.final) == {"point": 1, "weight-noise:0.1": 5}
    point = [[r.summary for r in rows if r.posterior == "point"] for _, rows in evaluation.tables()]
    assert point[0] == point[1]


def test_with_no_more_samples_to_take_the_final_evaluation_is_the_last_of_the_curve() -> None:
    settings = replace(CONFIG.evaluation, num_final_samples=CONFIG.evaluation.num_samples)
    evaluation = evaluated_at(CONFIG.num_steps, replace(CONFIG, evaluation=settings))
    assert [r.summary for r in evaluation.final] == [r.summary for r in evaluation.metrics]
    assert samples_of(evaluation.final) == {"point": 1, "weight-noise:0.1": 3}


@pytest.mark.parametrize("posterior", ["weight-noise:0.1", "point"])
def test_samples_are_taken_on_the_sequences_set_aside_for_them(posterior: str) -> None:
    rows = [row for row in evaluated_at(5).metrics if row.posterior == posterior]
    expected = 12 if posterior != "point" else 24
    assert {row.num_sequences for row in rows} == {expected}
