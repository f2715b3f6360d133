"""A run that can be stopped at any moment, and whose directory tells the whole story."""

import inspect
import random
import shutil
import signal
import subprocess
import time
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from sweep_results import assert_same_run, epigrok_command, num_processes, positions
from tiny_run import EVALUATION, tiny

import epigrok
from epigrok.cli import main
from epigrok.config import RunConfig, preset
from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.records.holder import read_holder
from epigrok.records.lease import LeaseHeldError, hold_lease
from epigrok.runs import Run, TrainOptions
from epigrok.runs.describing import write_identity
from epigrok.sweeps.description import Sweep, prepare
from epigrok.workspace import Workspace

SPLITS = ("id_train", "id_val", "ood_val")


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that stopped at step 12; none of the tests changes it."""
    return epigrok.train(
        tiny(), tmp_path_factory.mktemp("paused"), TrainOptions(stop_at_step=12)
    ).path


@pytest.fixture
def stopped(paused: Path, tmp_path: Path) -> Path:
    """A copy of that run."""
    return shutil.copytree(paused, tmp_path / "stopped")


def assert_starts_over(run_dir: Path) -> None:
    options = TrainOptions(start_over=True, stop_at_step=1)
    run = epigrok.train(tiny(), run_dir, options)
    assert run.checkpoints == [0, 1]
    assert {row["step"] for row in run.metrics()} == {0}


def keys_of(run: Run, table: str) -> list[tuple[object, ...]]:
    rows = run.directory.rows(table)
    return [(row["step"], row["split"], row["posterior"], row["num_samples"]) for row in rows]


def test_a_finished_run_has_every_file_and_every_row(finished: Run) -> None:
    assert finished.is_done
    samples = {"point": 1, "laplace": 2, "weight-noise:0.1": 2}
    more = {"point": 1, "laplace": 3, "weight-noise:0.1": 3}
    exact = {"oracle-memorising": 1, "oracle-generalising": 1}
    points = [(0, "exact", exact), (20, "final", more)]
    points += [(step, "metrics", samples) for step in range(0, 21, 5)]
    expected: dict[str, list[tuple[object, ...]]] = {"metrics": [], "final": [], "exact": []}
    for step, table, posteriors in points:
        expected[table] += [(step, s, p, n) for p, n in posteriors.items() for s in SPLITS]
    for table, keys in expected.items():
        assert sorted(keys_of(finished, table)) == sorted(keys), table
    assert [row["step"] for row in finished.directory.rows("training")] == [5, 10, 15, 20]
    assert [row["step"] for row in finished.directory.rows("timings")] == [0, 5, 10, 15, 20]
    # Six context lengths for two splits, the query alone for held-out cells.
    assert len(positions(finished.directory)) == (5 * 3 + 3 + 2) * (6 + 6 + 1)
    assert not (finished.path / "positions").exists()
    assert finished.checkpoints == [0, 1, 2, 20]
    assert not list(finished.path.rglob("resume.pt"))
    status = finished.directory.status()
    assert (status["state"], status["step"]) == ("done", 20)
    (process,) = finished.directory.provenance()["processes"]
    assert process["versions"]["torch"] == version("torch")


def test_training_a_finished_run_changes_nothing(finished: Run) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.path.rglob("*")}
    assert epigrok.train(tiny(), finished.path).is_done
    assert before == {path: path.stat().st_mtime_ns for path in finished.path.rglob("*")}


def test_pausing_and_resuming_gives_the_same_run(finished: Run, tmp_path: Path) -> None:
    for pause in (0, 3, 10, 17):
        run = epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=pause))
        assert run.directory.status()["step"] == pause
        assert not run.is_done
    run = epigrok.train(tiny(), tmp_path)
    assert num_processes(run.directory) == 5
    assert_same_run(run.directory, finished.directory)


def test_a_run_killed_right_after_it_was_done_has_the_checkpoints_of_any_other(
    finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=17))
    mark_done = RunDirectory.mark_done

    def mark_done_and_be_killed(run: RunDirectory, *given: Workspace | bool) -> None:
        mark_done(run, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunDirectory, "mark_done", mark_done_and_be_killed)
    with pytest.raises(KeyboardInterrupt):
        epigrok.train(tiny(), tmp_path)
    assert_same_run(RunDirectory(tmp_path), finished.directory)


def test_a_run_that_keeps_only_tables_has_all_of_them_and_says_so(
    finished: Run, tmp_path: Path
) -> None:
    run = epigrok.train(tiny(), tmp_path, TrainOptions(keeps_weights=False))
    assert run.is_done
    assert run.checkpoints == []
    assert run.metrics() == finished.metrics()
    assert positions(run.directory) == positions(finished.directory)
    with pytest.raises(UserError, match="was kept without weights; to have them, train the run"):
        run.model()
    # Training it again changes nothing, however it is asked.
    assert epigrok.train(tiny(), tmp_path).checkpoints == []


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("metrics.jsonl", "flip"),
        ("metrics.jsonl", "cut"),
        ("timings.jsonl", "remove"),
        ("positions/step-5.safetensors", "flip"),
        ("positions/step-5.safetensors", "remove"),
        ("world.safetensors", "flip"),
        ("world.safetensors", "cut"),
        ("world.safetensors", "remove"),
    ],
)
def test_a_damaged_file_is_noticed_before_the_run_goes_on(
    name: str, damage: str, stopped: Path
) -> None:
    file = stopped / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "flip":
        file.write_bytes(content)
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 3])
    else:
        file.unlink()
    if (name, damage) == ("world.safetensors", "remove"):
        # Drawn anew, and the same: it follows from the configuration.
        assert epigrok.train(tiny(), stopped).is_done
        return
    before = {path: path.read_bytes() for path in stopped.glob("*.jsonl")}
    with pytest.raises(UserError, match=rf"{Path(name).name}"):
        epigrok.train(tiny(), stopped)
    assert before == {path: path.read_bytes() for path in stopped.glob("*.jsonl")}
    assert_starts_over(stopped)


@pytest.mark.parametrize("lost", ["DONE", "resume"])
def test_rows_that_no_checkpoint_can_repeat_are_never_deleted(
    lost: str, finished: Run, paused: Path, tmp_path: Path
) -> None:
    source = paused if lost == "resume" else finished.path
    run_dir = shutil.copytree(source, tmp_path / "run")
    (run_dir / "DONE").unlink(missing_ok=True)
    for file in run_dir.rglob("resume.pt"):
        file.unlink()
    before = {path: path.read_bytes() for path in run_dir.glob("*.jsonl")}
    last = 20 if lost == "DONE" else 10
    with pytest.raises(UserError, match=rf"rows up to step {last}, but no .*--start-over"):
        epigrok.train(tiny(), run_dir)
    assert before == {path: path.read_bytes() for path in run_dir.glob("*.jsonl")}
    assert_starts_over(run_dir)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"step": 20, "tables": {}, "files": {}}'])
def test_a_done_that_says_nothing_of_the_run_is_not_believed(
    content: str, finished: Run, stopped: Path
) -> None:
    (stopped / "DONE").write_text(content)
    run = epigrok.train(tiny(), stopped)
    assert_same_run(run.directory, finished.directory)


def test_how_often_and_what_is_evaluated_leaves_the_weights_alone(
    finished: Run, tmp_path: Path
) -> None:
    posteriors = ("point", "laplace:evidence", "laplace-exact", "laplace-probit", "weight-noise:1")
    often = replace(EVALUATION, every=7, num_sequences=24, posteriors=posteriors)
    run = epigrok.train(tiny(often), tmp_path)
    assert {row["posterior"] for row in run.metrics()} == set(posteriors)
    ours, theirs = run.model().state_dict(), finished.model().state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_another_configuration_is_refused_with_the_fields_that_differ(finished: Run) -> None:
    with pytest.raises(UserError, match=r"optim\.lr: 0\.04 -> 0\.02; run_seed: 0 -> 1"):
        epigrok.train(tiny(run_seed=1, optim=replace(tiny().optim, lr=0.02)), finished.path)


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


@pytest.mark.parametrize("name", ["training.jsonl", "metrics.jsonl", "status.json", "positions"])
def test_files_that_are_not_a_runs_are_not_taken_for_one(name: str, tmp_path: Path) -> None:
    mine = tmp_path / name
    if name == "positions":
        mine.mkdir()
        mine /= "of-mine"
    mine.write_text('{"loss": 1.0}\n')
    with pytest.raises(UserError, match=rf"has a {name} but no config\.json, so it is not"):
        epigrok.train(tiny(), tmp_path)
    assert mine.read_text() == '{"loss": 1.0}\n'


def test_a_directory_that_is_worked_on_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hold_lease(tmp_path):
        with pytest.raises(LeaseHeldError):
            epigrok.train(tiny(), tmp_path)
        assert main(["train", "classic", "--out", str(tmp_path)]) == 2
    assert "is being worked on by process" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["provenance.json", "checkpoints/step-12/digests.json"])
def test_damaged_records_are_no_reason_to_stop(name: str, finished: Run, stopped: Path) -> None:
    (stopped / name).write_text("[]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = epigrok.train(tiny(), stopped)
    assert_same_run(run.directory, finished.directory)


def test_a_damaged_world_is_told(tmp_path: Path) -> None:
    epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=0))
    (tmp_path / "world.safetensors").write_bytes(b"")
    with pytest.raises(UserError, match=r"cannot read .*world.safetensors"):
        epigrok.train(tiny(), tmp_path)


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        epigrok.train(tiny(), tmp_path / "file" / "run")


def test_a_posterior_that_does_not_exist_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    unknown = replace(EVALUATION, posteriors=("point", "nowhere"))
    with pytest.raises(UserError, match=r"no posterior named 'nowhere'; there are: .*laplace"):
        epigrok.train(tiny(unknown), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_name_is_no_configuration(tmp_path: Path) -> None:
    # Without the type checks of the tests, which would speak first.
    train = inspect.unwrap(epigrok.train)
    with pytest.raises(UserError, match=r"a RunConfig is needed, such as preset\('classic'\), not"):
        train("classic", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def start(*arguments: object) -> subprocess.Popen[str]:
    command = epigrok_command(*arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_steps(run_dir: Path, process: subprocess.Popen[str]) -> None:
    """Until the process has opened the run and there is something to resume."""

    def has_begun() -> bool:
        holder = read_holder(run_dir)
        is_there = list(run_dir.glob("checkpoints/step-*"))
        return holder is not None and holder.pid == process.pid and bool(is_there)

    while process.poll() is None and not has_begun():
        time.sleep(0.01)


def kill_and_resume_until_done(
    run_dir: Path, command: tuple[object, ...], num_kills: int, spread: float
) -> RunDirectory:
    moments = random.Random(0)
    for _ in range(num_kills):
        process = start(*command)
        wait_for_steps(run_dir, process)
        time.sleep(moments.uniform(0.0, spread))
        process.kill()
        process.communicate()
    process = start(*command)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return RunDirectory(run_dir)


def test_killing_a_run_at_random_moments_changes_nothing(tmp_path: Path) -> None:
    config: RunConfig = tiny(num_steps=160)
    undisturbed = epigrok.train(config, tmp_path / "undisturbed")
    (tmp_path / "killed").mkdir()
    write_identity(tmp_path / "killed", config)
    command = ("run", tmp_path / "killed", "--device", "cpu", "--checkpoint-seconds", "0.1")
    killed = kill_and_resume_until_done(tmp_path / "killed", command, num_kills=2, spread=0.3)
    assert num_processes(killed) == 3
    assert_same_run(killed, undisturbed.directory)


@pytest.mark.slow
def test_ten_kills_of_the_whole_preset_change_nothing(tmp_path: Path) -> None:
    undisturbed = epigrok.train(preset("icl-tiny"), tmp_path / "undisturbed")
    command = ("train", "icl-tiny", "--out", tmp_path / "killed", "--checkpoint-seconds", "5")
    killed = kill_and_resume_until_done(tmp_path / "killed", command, num_kills=10, spread=15.0)
    assert_same_run(killed, undisturbed.directory)


def test_ctrl_c_saves_and_says_how_to_resume(tmp_path: Path) -> None:
    run_dir = tmp_path / "a run"
    process = start("train", "icl-tiny", "--out", run_dir, "--evaluation.num-sequences", 48)
    wait_for_steps(run_dir, process)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in text
    step = epigrok.open_run(run_dir).directory.status()["step"]
    assert f"stopped at step {step}, saved" in text
    assert f"epigrok train icl-tiny --out '{run_dir}' --evaluation.num-sequences 48" in text
    assert step in epigrok.open_run(run_dir).checkpoints


def test_progress_is_shown_if_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    epigrok.train(tiny(), tmp_path / "silent")
    assert capsys.readouterr().out == ""
    epigrok.train(tiny(), tmp_path / "shown", progress=True)
    assert "step 20/20  loss" in capsys.readouterr().out
