"""Jobs for SLURM, without a SLURM; `tests/cluster` has one."""

import os
import sys
from pathlib import Path

import pytest

from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.runs.describing import write_identity
from epigrok.sweeps.engines.local import PoolOptions
from epigrok.sweeps.engines.slurm import AllocatedRuns, SlurmOptions, requeue_this_job, submit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpus": 0}, "cpus must be at least 1, got 0"),
        ({"runs_at_once": -1}, "runs_at_once must be at least 1, got -1"),
        ({"time_minutes": 2}, "a time limit of 2 min leaves no time to compute: SLURM warns 90 s"),
        ({"sbatch": ("=h100",)}, "'=h100' is not an option of sbatch; write name=value"),
    ],
)
def test_what_cannot_be_asked_of_slurm_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SlurmOptions(**options)  # type: ignore[arg-type]


def done_run(path: Path) -> RunDirectory:
    path.mkdir()
    write_identity(path, preset("classic"))
    run = RunDirectory(path)
    run.mark_done()
    return run


def test_a_job_says_how_its_runs_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [done_run(tmp_path / name) for name in ("a", "b")]
    paths = tuple(str(run.path) for run in runs)
    assert AllocatedRuns(paths, PoolOptions(), 2, "cpu")() == [("a", "done"), ("b", "done")]
    assert capsys.readouterr().out.splitlines() == ["a done ", "b done "]


def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> Path:
    """A tool that knows the job's state and notes what it was told."""
    told = tmp_path / "told"
    tool = tmp_path / "bin" / "scontrol"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho $@ >> {told}\necho JobState={state}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    return told


@pytest.mark.parametrize(
    ("state", "is_requeued", "words"),
    [("RUNNING", True, "is queued again"), ("CANCELLED", False, "was ended by SLURM or its user")],
)
def test_a_running_job_is_put_back_and_a_cancelled_one_stays_away(
    state: str,
    is_requeued: bool,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = scontrol(tmp_path, monkeypatch, state)
    requeue_this_job()
    assert ("requeue 17" in told.read_text().splitlines()) == is_requeued
    assert capsys.readouterr().out == f"runs are saved; job 17 {words}\n"


def test_without_submitit_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(UserError, match=r"pip install 'epigrok\[slurm\]'"):
        submit(tmp_path, [run], PoolOptions(), SlurmOptions())


def test_without_runs_nothing_is_submitted(tmp_path: Path) -> None:
    submission = submit(tmp_path, [], PoolOptions(), SlurmOptions())
    assert submission.jobs == []
    assert list(tmp_path.iterdir()) == []
