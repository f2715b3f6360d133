"""Evaluating a run after training: what is kept, what replaces what, and ensembles."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_run import tiny

import epigrok
from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.evaluation import evaluation_sets, score_posterior
from epigrok.posteriors import Ensemble
from epigrok.runs import Run, TrainOptions
from epigrok.runs.describing import write_identity
from epigrok.runs.evaluating import EvaluateOptions, evaluate_run, table_of

POINT = EvaluateOptions(posteriors=("point",), num_sequences=16)


@pytest.fixture
def run(finished: Run, tmp_path: Path) -> Run:
    """A copy of the finished run, whose evaluations nobody else sees."""
    return epigrok.open_run(shutil.copytree(finished.path, tmp_path / "run"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two runs of the same task and other seeds, at their first step."""
    place = tmp_path_factory.mktemp("others")
    return [
        epigrok.train(tiny(run_seed=seed), place / f"seed-{seed}", TrainOptions(stop_at_step=1))
        for seed in (1, 2)
    ]


def test_the_default_is_the_final_evaluation_again(run: Run) -> None:
    rows = evaluate_run(run, EvaluateOptions())
    assert rows == run.directory.rows("evaluation")
    for again, final in zip(rows, run.directory.rows("final"), strict=True):
        assert again.pop("members") == ""
        assert again == final


def test_ensembles_are_told_apart_by_their_members(run: Run, others: list[Run]) -> None:
    for other in [*others, others[0]]:
        evaluate_run(run, POINT, ensemble_with=(other,))
    rows = run.directory.rows("evaluation")
    members = [row["members"] for row in rows if row["posterior"] == "ensemble"]
    pairs = [" ".join(sorted([run.path.name, other.path.name])) for other in others]
    assert Counter(members) == dict.fromkeys(pairs, len(run.config.task.splits))
    with pytest.raises(UserError, match="named twice"):
        evaluate_run(run, POINT, ensemble_with=(run,))


def test_an_ensemble_at_a_step_has_all_its_members_at_that_step(
    run: Run, others: list[Run]
) -> None:
    options = replace(POINT, step=0, num_samples=1)
    rows = evaluate_run(run, options, ensemble_with=(others[0],))
    (row,) = [row for row in rows if (row["posterior"], row["split"]) == ("ensemble", "id_val")]
    assert row["num_samples"] == 2
    members = [member.model(0) for member in (run, others[0])]
    sets = {"id_val": evaluation_sets(run.config, run.family())["id_val"].first(16)}
    scores = score_posterior(members[0], Ensemble.of(members), sets, 2)["id_val"]
    assert row["nll"] == pytest.approx(scores.summary()["nll"], rel=1e-5)


def test_an_ensemble_over_different_tasks_is_refused(run: Run, tmp_path: Path) -> None:
    write_identity(tmp_path, tiny(task_seed=1))
    with pytest.raises(UserError, match=r"learnt different tasks; an ensemble needs one task"):
        evaluate_run(run, POINT, ensemble_with=(epigrok.open_run(tmp_path),))


def test_results_from_fewer_sequences_replace_no_others(run: Run) -> None:
    full = evaluate_run(run, replace(POINT, num_sequences=30))
    with pytest.warns(UserWarning, match=r"not kept: .*evaluation\.jsonl has point from more"):
        fewer = evaluate_run(run, replace(POINT, num_sequences=10))
    assert sum(row["num_sequences"] for row in fewer) < sum(row["num_sequences"] for row in full)
    assert run.directory.rows("evaluation") == full
    more = evaluate_run(run, replace(POINT, num_sequences=60))
    assert more != full
    assert run.directory.rows("evaluation") == more


def test_a_sequence_more_does_not_make_up_for_all_but_one_sample(run: Run) -> None:
    noise = EvaluateOptions(posteriors=("weight-noise:0.1",), num_sequences=26, num_samples=8)
    full = evaluate_run(run, noise)
    with pytest.warns(UserWarning, match="not kept: .*more sequences times samples"):
        evaluate_run(run, replace(noise, num_sequences=52, num_samples=1))
    assert run.directory.rows("evaluation") == full


def test_fewer_sequences_are_evaluated_but_posteriors_are_fitted_to_all(run: Run) -> None:
    options = EvaluateOptions(posteriors=("laplace",), num_samples=2, num_sequences=26)
    few, every = (
        {row["split"]: row for row in evaluate_run(run, chosen)}["id_train"]
        for chosen in (options, replace(options, num_sequences=None))
    )
    assert (few["num_sequences"], every["num_sequences"]) == (26, 52)
    assert few["num_fit_answers"] == every["num_fit_answers"] == 6 * 52
    assert few["log_evidence"] == every["log_evidence"]
    # Fitted to half of the sequences, the posterior would be wider and this a fifth more.
    assert few["epistemic"] == pytest.approx(every["epistemic"], rel=0.1)


def test_tables_tell_the_prior_of_laplace_posteriors(run: Run) -> None:
    evaluate_run(run, EvaluateOptions(posteriors=("point", "laplace:evidence"), num_samples=2))
    decay = run.config.optim.weight_decay
    rows = [
        row for table in ("metrics", "final", "evaluation") for row in run.directory.rows(table)
    ]
    assert {row["posterior"] for row in rows} >= {"point", "laplace", "laplace:evidence"}
    for row in rows:
        is_laplace = row["posterior"].startswith("laplace")
        # Six answers of each of the 52 sequences.
        assert row.get("num_fit_answers") == (6 * 52 if is_laplace else None)
        assert ("log_evidence" in row) == is_laplace
        if is_laplace:
            assert (row["prior_precision"] == decay) == (row["posterior"] == "laplace")


def test_a_series_is_kept_in_its_own_table(run: Run) -> None:
    rows = evaluate_run(run, POINT, "context-length")
    assert table_of(run.directory, "context-length").name == "context-length.jsonl"
    assert run.directory.rows("context_length") == rows
    assert {row["context_length"] for row in rows} == set(range(1, 7))
    assert run.directory.rows("evaluation") == run.directory.rows("context_noise") == []


def test_what_cannot_be_evaluated_is_said(run: Run, tmp_path: Path) -> None:
    for option in ("num_samples", "num_sequences"):
        with pytest.raises(UserError, match=f"{option} must be positive"):
            EvaluateOptions(**{option: 0})
    with pytest.raises(UserError, match="twice in point, point"):
        EvaluateOptions(posteriors=("point", "point"))
    with pytest.raises(UserError, match="no posterior named 'nowhere'"):
        evaluate_run(run, EvaluateOptions(posteriors=("nowhere",)))
    with pytest.raises(UserError, match=r"posterior 'weight-noise:1e30' are not finite"):
        evaluate_run(run, EvaluateOptions(posteriors=("weight-noise:1e30",)))
    for option in ("num_samples", "num_sequences"):
        with pytest.raises(UserError, match=r"would take .* TiB of memory"):
            evaluate_run(run, EvaluateOptions(**{option: 10**12}))
    write_identity(tmp_path, preset("classic"))
    with pytest.raises(UserError, match="no context to vary"):
        evaluate_run(epigrok.open_run(tmp_path), EvaluateOptions(), "context-noise")
    assert run.directory.rows("evaluation") == []


@pytest.mark.parametrize("row", ['{"posterior": "point"}', '{"step": 1, "posterior": []}'])
def test_damaged_rows_of_an_earlier_evaluation_are_told(row: str, run: Run) -> None:
    table = run.directory.table("context_length")
    table.write_text(row + "\n")
    with pytest.raises(UserError, match=r"context-length\.jsonl is damaged: its line 1 has"):
        evaluate_run(run, POINT, "context-length")
    assert table.read_text() == row + "\n"
