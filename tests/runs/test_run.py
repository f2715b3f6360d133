"""A run to look into."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_run import tiny

import epigrok
from epigrok.errors import UserError
from epigrok.evaluation import evaluation_sets
from epigrok.records.directory import RunDirectory
from epigrok.runs import Run
from epigrok.runs.describing import write_identity
from epigrok.runs.evaluating import EvaluateOptions, Subject, evaluate_subject


def test_a_finished_run_shows_what_it_has(finished: Run) -> None:
    run = epigrok.open_run(str(finished.path))
    assert run.config == tiny()
    assert run.is_done
    assert run.newest_step() == run.checkpoints[-1] == 20
    assert [row["step"] for row in run.metrics()] == sorted(row["step"] for row in run.metrics())
    query = "select accuracy from metrics where step = 5 and split = 'id_val' order by posterior"
    rows = [row for row in run.metrics() if (row["step"], row["split"]) == (5, "id_val")]
    by_name = sorted(rows, key=lambda row: row["posterior"])
    assert run.sql(query).fetchall() == [(row["accuracy"],) for row in by_name]


def test_a_run_is_shown_on_one_line(finished: Run) -> None:
    assert repr(finished) == (
        f"Run({str(finished.path)!r}: icl-tiny, done at step 20 of 20, 4 checkpoints)"
    )


def test_models_are_those_of_their_step(finished: Run) -> None:
    first, last, newest = finished.model(0), finished.model(20), finished.model()
    for name, weights in last.state_dict().items():
        assert torch.equal(weights, newest.state_dict()[name])
    assert not torch.equal(first.head_weight, last.head_weight)
    with pytest.raises(UserError, match="step"):
        finished.model(13)


def test_a_posterior_is_the_one_that_was_tracked(finished: Run) -> None:
    """Its predictions on a split have the uncertainty that the table has."""
    for name in ("laplace", "weight-noise:0.1"):
        model, posterior = finished.model(20), finished.posterior(name, step=20)
        subject = Subject.of(finished, 20, torch.device("cpu"))
        row = evaluate_subject(subject, EvaluateOptions(posteriors=(name,)))[0]
        sets = evaluation_sets(finished.config, finished.family())
        tokens = sets[row["split"]].batch.tokens_BL[: row["num_sequences"]]
        found = epigrok.predict(model, posterior, tokens, num_samples=row["num_samples"])
        assert found.epistemic[:, -1].mean().item() == pytest.approx(row["epistemic_final"])
    with pytest.raises(UserError, match="exists only for runs trained with IVON"):
        finished.posterior("ivon")


def test_its_family_makes_the_batches_it_was_trained_on(finished: Run) -> None:
    first, second = (finished.family().training_batch(3).tokens_BL for _ in range(2))
    assert torch.equal(first, second)
    assert len(first) == tiny().batch_size


def test_a_run_that_has_not_begun_has_no_model(tmp_path: Path) -> None:
    write_identity(tmp_path, tiny())
    run = epigrok.open_run(tmp_path)
    assert (run.checkpoints, run.metrics(), run.is_done) == ([], [], False)
    with pytest.raises(UserError, match="has no checkpoint yet"):
        run.model()


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run directory: it has no run\.json"):
        epigrok.open_run(tmp_path)


def test_weights_of_another_model_are_refused(finished: Run, tmp_path: Path) -> None:
    run = RunDirectory(shutil.copytree(finished.path, tmp_path / "run"))
    config = run.config_json()
    config["model"]["width"] = 32
    (run.path / "config.json").write_text(json.dumps(config))
    run.mark_done()
    with pytest.raises(UserError, match="holds weights of another model"):
        Run(run).model()
