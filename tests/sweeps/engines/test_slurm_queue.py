"""Which runs SLURM still has jobs for, with a stand-in for its `squeue`."""

import os
import signal
import time
from pathlib import Path

import pytest

from epigrok.config import preset
from epigrok.records.directory import RunDirectory
from epigrok.runs.describing import write_identity
from epigrok.sweeps.engines import slurm_queue
from epigrok.sweeps.engines.local import RunEnd
from epigrok.sweeps.engines.slurm_queue import Submission, runs_in_queue, wait_for_jobs


def squeue_says(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int = 0
) -> Path:
    """A tool that notes what it was asked."""
    asked = tmp_path / "asked"
    tool = tmp_path / "bin" / "squeue"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f"#!/bin/sh\necho \"$@\" > {asked}\nprintf '{text}'\nexit {exit_code}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return asked


def submission(directory: Path, jobs: list[list[str]], array_size: int = 2) -> Submission:
    folder = directory / "slurm" / "20260101-000000-abc"
    folder.mkdir(parents=True)
    made = Submission(folder, jobs, array_size)
    made.write()
    return made


def test_a_submission_is_summed_up_in_a_line(tmp_path: Path) -> None:
    made = submission(tmp_path, [["a", "b"], ["c"]])
    assert made.summary == f"submitted 3 runs in 2 jobs; logs in {made.folder}"
    nothing = Submission(made.folder, [], 2, num_queued=3)
    assert nothing.summary == "submitted 0 runs in 0 jobs; 3 already have jobs"


def test_a_large_submission_is_several_arrays(tmp_path: Path) -> None:
    made = submission(tmp_path, [["a"], ["b"], ["c"]])
    assert list(made.arrays()) == [("epigrok-abc-0", [["a"], ["b"]]), ("epigrok-abc-2", [["c"]])]


def test_jobs_that_wait_or_run_are_found_by_name_and_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission(tmp_path, [["a", "b"], ["c"], ["d"]])
    listing = "epigrok-abc-0 1\\nepigrok-abc-2 N/A\\nsomebody-elses 0\\n"
    asked = squeue_says(listing, tmp_path, monkeypatch)
    assert runs_in_queue(tmp_path) == {"c", "d"}
    assert "--name=epigrok-abc-0,epigrok-abc-2" in asked.read_text()


def test_without_submissions_or_slurm_nothing_is_in_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = squeue_says("epigrok-abc-0 0\\n", tmp_path, monkeypatch, exit_code=1)
    assert runs_in_queue(tmp_path) == set()
    assert not asked.exists()
    submission(tmp_path, [["a"]])
    assert runs_in_queue(tmp_path) == set()


def test_waiting_ends_when_runs_are_done_or_have_failed(tmp_path: Path) -> None:
    runs = [RunDirectory(tmp_path / name) for name in ("done", "failed")]
    for run in runs:
        run.path.mkdir()
    write_identity(runs[0].path, preset("classic"))
    runs[0].mark_done()
    runs[1].write_status(state="failed", reason="no memory", updated=time.time() + 60)
    told: list[RunEnd] = []
    ends = wait_for_jobs(tmp_path, runs, told.append)
    assert ends == told == [RunEnd(runs[0], "done"), RunEnd(runs[1], "failed", "no memory")]


def test_a_run_whose_job_is_gone_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOKS", "SQUEUES"):
        monkeypatch.setattr(slurm_queue, f"_SECONDS_BETWEEN_{name}", 0.0)
    monkeypatch.setattr(slurm_queue, "SECONDS_OF_DOUBT", 0.0)
    squeue_says("", tmp_path, monkeypatch)
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    told: list[RunEnd] = []
    (end,) = wait_for_jobs(tmp_path, [run], told.append)
    assert told == [end]
    assert (end.state, end.run) == ("failed", run)
    assert end.reason == f"its job is gone; see the logs in {tmp_path / 'slurm'}"


def test_a_stop_ends_the_waiting_and_tells_of_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [RunDirectory(tmp_path / name) for name in ("finishes", "goes on")]
    for run in runs:
        run.path.mkdir()
    write_identity(runs[0].path, preset("classic"))

    def finish_and_stop(seconds: float) -> None:
        runs[0].mark_done()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(time, "sleep", finish_and_stop)
    told: list[RunEnd] = []
    ends = wait_for_jobs(tmp_path, runs, told.append)
    assert ends == told == [RunEnd(runs[0], "done"), RunEnd(runs[1], "stopped")]
