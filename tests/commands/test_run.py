"""`epigrok run`: a worker on one prepared directory, and its exit codes."""

import errno
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_run import EVALUATION, tiny

from epigrok.cli import main
from epigrok.config import AdamWConfig, RunConfig
from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HELD, EXIT_STOPPED, EXIT_USER_ERROR
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import hold_lease
from epigrok.runs import TrainOptions, train
from epigrok.runs.describing import write_identity
from epigrok.training import checkpoints

POINT = replace(EVALUATION, posteriors=("point",))


def work_on(path: Path, config: RunConfig | None = None) -> int:
    if config is not None:
        write_identity(path, config)
    return main(["run", str(path), "--device", "cpu"])


def test_a_prepared_run_is_trained_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert work_on(tmp_path, tiny(POINT, num_steps=5)) == EXIT_DONE
    assert RunDirectory(tmp_path).is_done
    assert "step 5/5" in capsys.readouterr().out
    assert work_on(tmp_path) == EXIT_DONE
    assert "is finished; nothing to do" in capsys.readouterr().out


def test_a_signal_while_a_run_is_marked_as_done_stops_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path, seed in ((first, 0), (second, 1)):
        path.mkdir()
        write_identity(path, tiny(POINT, num_steps=5, run_seed=seed))
    mark_done = RunDirectory.mark_done

    def marked_amid_a_signal(run: RunDirectory, *how: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        mark_done(run, *how)

    monkeypatch.setattr(RunDirectory, "mark_done", marked_amid_a_signal)
    assert main(["run", str(first), str(second), "--device", "cpu"]) == EXIT_STOPPED
    assert RunDirectory(first).is_done
    assert RunDirectory(second).status() == {}


def test_a_run_that_somebody_holds_is_left_alone(tmp_path: Path) -> None:
    write_identity(tmp_path, tiny())
    with hold_lease(tmp_path):
        assert work_on(tmp_path) == EXIT_HELD
    assert not (tmp_path / "world.safetensors").exists()


def test_a_failure_is_written_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert work_on(tmp_path, tiny(POINT, optim=AdamWConfig(lr=1e38))) == EXIT_FAILED
    status = RunDirectory(tmp_path).status()
    assert status["state"] == "failed"
    assert "not finite at step" in status["reason"]
    assert "not finite at step" in capsys.readouterr().out


def test_a_run_of_an_older_version_fails_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_identity(tmp_path, tiny())
    (tmp_path / "run.json").unlink()
    assert work_on(tmp_path) == EXIT_FAILED
    assert "was written by an older version" in RunDirectory(tmp_path).status()["reason"]
    assert "Traceback" not in capsys.readouterr().out


def test_a_directory_that_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert work_on(tmp_path) == EXIT_USER_ERROR
    assert "is not a run directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_is_told_in_a_sentence_and_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path)
    train(tiny(POINT, num_steps=5), run.path, TrainOptions(device="cpu", stop_at_step=2))
    before = run.table("metrics").read_bytes()

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "resume.pt")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "problem_with_checkpoint", refuse)
        assert work_on(tmp_path) == EXIT_FAILED
    output = capsys.readouterr()
    assert "Permission denied: resume.pt" in output.out
    assert "Traceback" not in output.out + output.err
    assert run.table("metrics").read_bytes() == before
    assert work_on(tmp_path) == EXIT_DONE
