"""The worker that every engine starts, and what is said of one that ended."""

import sys
import time
from pathlib import Path

import pytest

from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.engines.worker import (
    WorkerOptions,
    last_line,
    reason_of_failure,
    start_worker,
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_a_worker_is_told_its_run_its_device_and_its_plugins(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/echo")
    options = WorkerOptions(checkpoint_seconds=5.0, lease_seconds=7.0, plugins=("/a b/own.py",))
    for _ in range(2):
        assert start_worker([run], options, "cpu", {}).wait() == 0
    stamp, words, *again = run.log.read_text().splitlines()
    assert stamp.startswith("--- 2")
    assert words.startswith(f"-m epigrok run {run.path} --device cpu --driver-pid ")
    assert words.endswith("--lease-seconds 7.0 --keep weights --plugin /a b/own.py")
    assert len(again) == 2


def test_a_worker_has_the_environment_of_its_slot(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "show"
    script.write_text("#!/bin/sh\necho $CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    environment = {"CUDA_VISIBLE_DEVICES": "3", "OMP_NUM_THREADS": "2"}
    assert start_worker([run], WorkerOptions(), "cuda", environment).wait() == 0
    assert last_line(run) == "3 2"


def test_the_reason_is_a_signal_a_status_the_last_words_or_the_exit_code(run: RunDirectory) -> None:
    assert reason_of_failure(run, 3) == "ended with exit code 3"
    run.log.write_text("a line\n  the last words \n\n")
    assert reason_of_failure(run, 3) == "the last words"
    run.write_status(state="running", reason="old")
    assert reason_of_failure(run, 3) == "the last words"
    run.write_status(state="failed", reason="the loss is not finite", updated=time.time())
    assert reason_of_failure(run, 1) == "the loss is not finite"
    assert reason_of_failure(run, -9) == "killed by SIGKILL"


def test_only_the_end_of_a_long_log_is_read(run: RunDirectory) -> None:
    run.log.write_bytes(b"\xff" * 100_000 + b"\nend\n")
    assert last_line(run) == "end"


@pytest.mark.parametrize(
    ("option", "value"), [("checkpoint_seconds", -1.0), ("lease_seconds", 0.0)]
)
def test_what_cannot_be_is_refused(option: str, value: float) -> None:
    with pytest.raises(UserError, match=f"{option} must"):
        WorkerOptions(**{option: value})
