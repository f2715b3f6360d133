"""A run that can be stopped at any moment, and whose directory tells the whole story."""

import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import duckdb
import pytest
import torch
from safetensors.torch import save_file

import epigrok
from epigrok.config import AdamWConfig, EvaluationConfig, RunConfig, ScheduleConfig, preset
from epigrok.errors import UserError
from epigrok.evaluation import evaluation_sets, score_posterior
from epigrok.experiments import DivergedError, Run, TrainOptions, training
from epigrok.experiments.evaluate_run import EvaluateOptions, evaluate_run
from epigrok.experiments.lease import read_holder
from epigrok.experiments.position_shards import position_columns
from epigrok.experiments.run_files import RunDirectory
from epigrok.experiments.sweep import Sweep, prepare
from epigrok.files import read_json_lines
from epigrok.posteriors import Ensemble

REPEATABLE = ("config.json", "metrics.jsonl", "training.jsonl", "calibration.jsonl")
REPEATABLE += ("world.safetensors",)


def tiny(**changes: object) -> RunConfig:
    base = dataclasses.replace(
        preset("icl-tiny"),
        num_steps=40,
        batch_size=32,
        schedule=ScheduleConfig(warmup_steps=5),
        evaluation=EvaluationConfig(
            every=10,
            num_rows=48,
            posteriors=("point", "laplace", "weight-noise:0.1"),
            num_samples=2,
            num_final_samples=3,
        ),
        num_ladder_checkpoints=4,
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def positions(run: Run) -> list[tuple[object, ...]]:
    table = f"'{run.path}/positions-*.parquet'"
    return duckdb.sql(f"select * from {table} order by all").fetchall()


def assert_same_results(first: Run, second: Run) -> None:
    for name in REPEATABLE:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name
    assert positions(first) == positions(second)
    assert first.checkpoints == second.checkpoints
    for step in first.checkpoints:
        ours, theirs = first.model(step).state_dict(), second.model(step).state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return epigrok.train(tiny(), tmp_path_factory.mktemp("run"))


def test_a_finished_run_has_every_file_and_every_row(finished: Run) -> None:
    assert finished.is_done
    rows = finished.metrics()
    keys = [(row["step"], row["split"], row["posterior"], row["num_samples"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {row["step"] for row in rows} == {0, 10, 20, 30, 40}
    assert {row["split"] for row in rows} == {"id_train", "id_val", "ood_val"}
    training = read_json_lines(finished.path / "training.jsonl")
    assert [row["step"] for row in training] == [10, 20, 30, 40]
    # Six context lengths for two splits, the query alone for held-out cells; five evaluations of
    # three posteriors, two of them again with more samples, and two oracles.
    assert len(positions(finished)) == (5 * 3 + 2 + 2) * (6 + 6 + 1)
    assert {row["posterior"] for row in rows if row["step"] == 0} == {
        *tiny().evaluation.posteriors,
        "oracle-memorising",
        "oracle-generalising",
    }
    assert {row["num_samples"] for row in rows if row["step"] == 40} == {1, 2, 3}
    assert not (finished.path / "positions").exists()
    assert finished.checkpoints == [0, 1, 4, 40]
    status = finished.directory.status()
    assert (status["state"], status["step"]) == ("done", 40)
    provenance = json.loads((finished.path / "provenance.json").read_text())
    assert provenance["processes"][0]["versions"]["torch"] == version("torch")
    assert not list(finished.path.rglob("resume.pt"))


def test_a_finished_run_tells_how_often_each_confidence_was_right(finished: Run) -> None:
    query = """select split, sum(count * abs(accuracy - confidence)) / sum(count),
                   sum(count * accuracy) / sum(count), sum(count)
               from calibration where posterior = 'laplace' and num_samples = 3 group by split"""
    found = {split: values for split, *values in finished.sql(query).fetchall()}
    for row in finished.metrics():
        if row["step"] == 40 and row["posterior"] == "laplace" and row["num_samples"] == 3:
            num_asked = 1 if row["split"] == "id_val" else 6
            expected = [row["ece"], row["accuracy"], row["num_rows"] * num_asked]
            assert found.pop(row["split"]) == pytest.approx(expected)
    assert not found


def test_training_a_finished_run_changes_nothing(finished: Run) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.path.rglob("*.jsonl")}
    assert epigrok.train(tiny(), finished.path).is_done
    assert before == {path: path.stat().st_mtime_ns for path in finished.path.rglob("*.jsonl")}


def test_pausing_and_resuming_gives_the_same_run(finished: Run, tmp_path: Path) -> None:
    for pause in (0, 7, 20, 33):
        run = epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=pause))
        assert run.directory.status()["step"] == pause
        assert not run.is_done
    run = epigrok.train(tiny(), tmp_path)
    assert run.is_done
    assert_same_results(run, finished)


def test_a_run_killed_right_after_it_was_done_has_the_checkpoints_of_any_other(
    finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=37))
    mark_done = RunDirectory.mark_done

    def mark_done_and_be_killed(run: RunDirectory) -> None:
        mark_done(run)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunDirectory, "mark_done", mark_done_and_be_killed)
    with pytest.raises(KeyboardInterrupt):
        epigrok.train(tiny(), tmp_path)
    assert_same_results(Run(RunDirectory(tmp_path)), finished)


def test_a_damaged_table_of_one_evaluation_does_not_stop_the_run(
    finished: Run, tmp_path: Path
) -> None:
    epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=25))
    (tmp_path / "positions/step-10.safetensors").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"step-10.safetensors is damaged and left out"):
        run = epigrok.train(tiny(), tmp_path)
    assert run.is_done
    assert positions(run) == [row for row in positions(finished) if row[0] != 10]


def test_how_often_and_what_is_evaluated_leaves_the_weights_alone(
    finished: Run, tmp_path: Path
) -> None:
    posteriors = ("point", "laplace:evidence", "laplace-exact", "laplace-probit", "weight-noise:1")
    often = tiny(evaluation=EvaluationConfig(every=13, num_rows=24, posteriors=posteriors))
    run = epigrok.train(often, tmp_path)
    ours, theirs = run.model().state_dict(), finished.model().state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_another_configuration_is_refused_with_the_fields_that_differ(finished: Run) -> None:
    with pytest.raises(UserError, match=r"optim\.lr: 0\.04 -> 0\.02; run_seed: 0 -> 1"):
        epigrok.train(
            tiny(run_seed=1, optim=dataclasses.replace(tiny().optim, lr=0.02)), finished.path
        )


@pytest.mark.parametrize("every", [1, 10])
def test_a_run_that_diverges_stops_and_keeps_the_last_checkpoint(
    every: int, tmp_path: Path
) -> None:
    config = dataclasses.replace(
        preset("classic"),
        num_steps=50,
        optim=AdamWConfig(lr=1e38),
        schedule=ScheduleConfig(warmup_steps=0),
        # Evaluated after every step, weights that are not finite are met before any loss is.
        evaluation=EvaluationConfig(every=every, posteriors=("point", "laplace")),
    )
    with pytest.raises(DivergedError, match="not finite at step"):
        epigrok.train(config, tmp_path)
    run = epigrok.open_run(tmp_path)
    assert run.directory.status()["state"] == "failed"
    assert all(weights.isfinite().all() for weights in run.model().parameters())


def test_a_place_that_holds_other_runs_is_refused(tmp_path: Path) -> None:
    sweep = Sweep(name="s", methods=("classic",))
    prepare(tmp_path / "sweep", sweep)
    with pytest.raises(UserError, match="holds a sweep; choose another directory"):
        epigrok.train(tiny(), tmp_path / "sweep")
    epigrok.train(tiny(), tmp_path / "run", TrainOptions(stop_at_step=1))
    with pytest.raises(UserError, match="holds a single run; choose another directory"):
        prepare(tmp_path / "run", sweep)
    (tmp_path / "run" / "config.json").unlink()
    with pytest.raises(UserError, match="checkpoints of an unknown run"):
        epigrok.train(tiny(run_seed=7), tmp_path / "run")


@pytest.mark.parametrize("name", ["provenance.json", "checkpoints/step-10/digests.json"])
def test_damaged_records_are_no_reason_to_stop(name: str, finished: Run, tmp_path: Path) -> None:
    epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=10))
    (tmp_path / name).write_text("[]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same_results(epigrok.train(tiny(), tmp_path), finished)


def test_a_damaged_world_and_predictions_that_are_not_finite_are_told(tmp_path: Path) -> None:
    run = epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=1))
    wild = EvaluateOptions(posteriors=("weight-noise:1e30",))
    with pytest.raises(UserError, match=r"posterior 'weight-noise:1e30' are not finite"):
        evaluate_run(run, wild)
    (tmp_path / "world.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match=r"cannot read .*world.safetensors"):
        epigrok.train(tiny(), tmp_path)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        epigrok.open_run(tmp_path)


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        epigrok.train(tiny(), tmp_path / "file" / "run")


def start(run_dir: Path, *flags: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "epigrok", "train", "icl-tiny", "--out", str(run_dir), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(run_dir: Path, *flags: str) -> None:
    process = start(run_dir, *flags)
    output, _ = process.communicate()
    assert process.returncode == 0, output.decode()


SMALL = "--num-steps 150 --batch-size 32 --schedule.warmup-steps 5 --evaluation.every 7 "
SMALL_FLAGS = (SMALL + "--evaluation.num-rows 48 --checkpoint-seconds 0.2").split()


def wait_for_steps(run_dir: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the process has opened the run and there is something to resume."""

    def has_begun() -> bool:
        holder = read_holder(run_dir)
        is_there = list(run_dir.glob("checkpoints/step-*"))
        return holder is not None and holder.pid == process.pid and bool(is_there)

    while process.poll() is None and not has_begun():
        time.sleep(0.02)


def kill_and_resume_until_done(
    run_dir: Path, flags: list[str], num_kills: int, spread: float
) -> Run:
    moments = random.Random(0)
    for _ in range(num_kills):
        process = start(run_dir, *flags)
        wait_for_steps(run_dir, process)
        time.sleep(moments.uniform(0.0, spread))
        process.kill()
        process.communicate()
    finish(run_dir, *flags)
    return epigrok.open_run(run_dir)


def test_killing_a_run_at_random_moments_changes_nothing(tmp_path: Path) -> None:
    finish(tmp_path / "undisturbed", *SMALL_FLAGS)
    killed = kill_and_resume_until_done(tmp_path / "killed", SMALL_FLAGS, num_kills=3, spread=1.5)
    assert len(json.loads((killed.path / "provenance.json").read_text())["processes"]) >= 2
    assert_same_results(killed, epigrok.open_run(tmp_path / "undisturbed"))


@pytest.mark.slow
def test_ten_kills_of_the_whole_preset_change_nothing(tmp_path: Path) -> None:
    flags = ["--checkpoint-seconds", "5"]
    finish(tmp_path / "undisturbed", *flags)
    killed = kill_and_resume_until_done(tmp_path / "killed", flags, num_kills=10, spread=15.0)
    assert_same_results(killed, epigrok.open_run(tmp_path / "undisturbed"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_resume(number: signal.Signals, tmp_path: Path) -> None:
    run_dir = tmp_path / "a run"
    process = start(run_dir, "--evaluation.num-rows", "48")
    wait_for_steps(run_dir, process)
    time.sleep(1.0)
    process.send_signal(number)
    output, _ = process.communicate()
    assert process.returncode == 130
    text = output.decode()
    assert "Traceback" not in text
    step = epigrok.open_run(run_dir).directory.status()["step"]
    assert f"stopped at step {step}, saved" in text
    assert f"epigrok train icl-tiny --out '{run_dir}' --evaluation.num-rows 48" in text
    assert step in epigrok.open_run(run_dir).checkpoints


def test_ensembles_are_told_apart_by_their_members(finished: Run, tmp_path: Path) -> None:
    names = ("second", "third")
    others = [
        epigrok.train(tiny(run_seed=seed), tmp_path / name, TrainOptions(stop_at_step=1))
        for seed, name in enumerate(names, start=1)
    ]
    options = EvaluateOptions(posteriors=("point",), num_rows=16)
    for other in [*others, others[0]]:
        evaluate_run(finished, options, ensemble_with=(other,))
    rows = read_json_lines(finished.path / "evaluation.jsonl")
    members = [row["members"] for row in rows if row["posterior"] == "ensemble"]
    pairs = [" ".join(sorted([finished.path.name, name])) for name in names]
    assert Counter(members) == dict.fromkeys(pairs, len(finished.config.task.splits))
    with pytest.raises(UserError, match="named twice"):
        evaluate_run(finished, options, ensemble_with=(finished,))


def test_an_ensemble_at_a_step_has_all_its_members_at_that_step(
    finished: Run, tmp_path: Path
) -> None:
    other = epigrok.train(tiny(run_seed=5), tmp_path / "other")
    options = EvaluateOptions(posteriors=("point",), num_rows=16, step=0, num_samples=1)
    rows = evaluate_run(finished, options, ensemble_with=(other,))
    (row,) = [row for row in rows if (row["posterior"], row["split"]) == ("ensemble", "id_val")]
    assert row["num_samples"] == 2
    members = [run.model(0) for run in (finished, other)]
    sets = {"id_val": evaluation_sets(finished.config, finished.family())["id_val"].first(16)}
    scores = score_posterior(members[0], Ensemble.of(members), sets, 2)["id_val"]
    assert row["nll"] == pytest.approx(scores.summary()["nll"], rel=1e-5)


def test_results_from_fewer_rows_replace_no_others(finished: Run, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(finished.path, run_dir)
    run = epigrok.open_run(run_dir)
    full = evaluate_run(run, EvaluateOptions(posteriors=("point",), num_rows=30))
    with pytest.warns(UserWarning, match="from more rows: point"):
        fewer = evaluate_run(run, EvaluateOptions(posteriors=("point",), num_rows=10))
    assert fewer != full
    kept = [row for row in read_json_lines(run_dir / "evaluation.jsonl") if row in full]
    assert kept == full
    more = evaluate_run(run, EvaluateOptions(posteriors=("point",), num_rows=40))
    assert read_json_lines(run_dir / "evaluation.jsonl")[-len(more) :] == more


def test_a_run_made_without_a_database_library_can_be_asked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epigrok.experiments.position_shards.find_spec", lambda _: None)
    run = epigrok.train(tiny(), tmp_path / "without")
    assert run.is_done
    count = "select count(*) from positions"
    found = epigrok.open_sweep(run.path).sql(count).fetchall()
    monkeypatch.undo()
    other = epigrok.train(tiny(), tmp_path / "with")
    assert found == epigrok.open_sweep(other.path).sql(count).fetchall()
    assert found[0][0] > 0


def test_many_samples_fit_into_the_table_of_positions(tmp_path: Path) -> None:
    (tmp_path / "positions").mkdir()
    metrics = {"id_val/laplace/40000": torch.ones(2, 3)}
    names = {"metrics": "accuracy,nll"}
    save_file(metrics, tmp_path / "positions" / "step-10.safetensors", metadata=names)
    assert position_columns(tmp_path)["num_samples"].tolist() == [40_000] * 3


def test_a_name_is_no_configuration(tmp_path: Path) -> None:
    # In a process of its own, because here the tests' own type checks would speak first.
    text = f"import epigrok; epigrok.train('classic', {str(tmp_path / 'run')!r})"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "a RunConfig is needed, such as preset('classic'), not 'classic'" in found.stderr
    assert not (tmp_path / "run").exists()


def test_training_can_end_with_the_sweeps_over_contexts(tmp_path: Path) -> None:
    config = tiny()
    settings = dataclasses.replace(
        config.evaluation, final_sweeps=("context-length", "context-noise")
    )
    run = epigrok.train(dataclasses.replace(config, evaluation=settings), tmp_path)
    lengths = read_json_lines(tmp_path / "context-length.jsonl")
    noises = read_json_lines(tmp_path / "context-noise.jsonl")
    assert run.is_done
    assert {row["context_length"] for row in lengths} == set(range(1, 7))
    assert {row["context_noise"] for row in noises} == {k / 10 for k in range(11)}
    assert {row["step"] for row in lengths + noises} == {config.num_steps}


def test_the_classic_family_has_no_context_to_vary() -> None:
    with pytest.raises(UserError, match="no context to vary"):
        dataclasses.replace(
            preset("classic"), evaluation=EvaluationConfig(final_sweeps=("context-noise",))
        )


def test_a_stop_during_the_sweeps_over_contexts_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny()
    settings = dataclasses.replace(config.evaluation, final_sweeps=("context-noise",))
    config = dataclasses.replace(config, evaluation=settings)
    scored = training.evaluate_run

    def stopped(*arguments: object, **options: object) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return scored(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(training, "evaluate_run", stopped)
    run = epigrok.train(config, tmp_path)
    assert not run.is_done
    assert run.directory.status()["state"] == "stopped"
    assert not (tmp_path / "context-noise.jsonl").exists()
    monkeypatch.undo()
    assert epigrok.train(config, tmp_path).is_done
    assert (tmp_path / "context-noise.jsonl").exists()


def test_fewer_rows_are_evaluated_but_posteriors_are_fitted_to_all(finished: Run) -> None:
    options = EvaluateOptions(posteriors=("laplace",), num_samples=2, num_rows=26)
    few, all_rows = (
        {row["split"]: row for row in evaluate_run(finished, chosen)}["id_train"]
        for chosen in (options, dataclasses.replace(options, num_rows=None))
    )
    assert (few["num_rows"], all_rows["num_rows"]) == (26, 52)
    # Fitted to half of the rows, the posterior would be wider and this a fifth more.
    assert few["epistemic"] == pytest.approx(all_rows["epistemic"], rel=0.1)
    with pytest.raises(UserError, match="num_rows must be positive"):
        EvaluateOptions(num_rows=0)


def test_tables_tell_the_prior_of_laplace_posteriors(finished: Run) -> None:
    evaluate_run(finished, EvaluateOptions(posteriors=("point", "laplace:evidence")))
    decay = finished.config.optim.weight_decay
    for row in [*finished.metrics(), *read_json_lines(finished.path / "evaluation.jsonl")]:
        is_laplace = row["posterior"].startswith("laplace")
        # Six answers of each of the 52 rows.
        assert row.get("num_fit_answers") == (6 * 52 if is_laplace else None)
        assert ("log_evidence" in row) == is_laplace
        if is_laplace:
            assert (row["prior_precision"] == decay) == (row["posterior"] == "laplace")


def test_what_cannot_be_evaluated_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="num_samples must be positive"):
        EvaluateOptions(num_samples=0)
    config = dataclasses.replace(preset("classic"), num_steps=10)
    run = epigrok.train(config, tmp_path, TrainOptions(stop_at_step=1))
    with pytest.raises(UserError, match="no context to vary"):
        evaluate_run(run, EvaluateOptions(), "context-noise")
