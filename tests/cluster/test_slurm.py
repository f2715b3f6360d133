"""The smoke sweep on a real SLURM on this machine: preempted, requeued, cancelled, resumed."""

import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from sweep_results import assert_same_results, num_processes, run_sweep

from epigrok.records.directory import run_directories
from epigrok.records.status import counts, read_statuses

pytestmark = pytest.mark.slurm

SCRIPT = Path(__file__).parents[2] / "cluster" / "slurm_on_localhost.sh"
ON_SLURM = ("--on", "slurm", "--partition", "low", "--checkpoint-seconds", "0.2")


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module", autouse=True)
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A SLURM of our own; where there cannot be one, every test here is skipped with the reason."""
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("SLURM tests did not run: submitit is not installed")
    if os.geteuid() != 0:
        pytest.skip("SLURM tests did not run: starting its daemons needs root")
    if shutil.which("slurmctld") is None:
        installed = subprocess.run([SCRIPT, "install"], capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"SLURM tests did not run: cannot install it: {installed.stderr.strip()}")
    state = tmp_path_factory.mktemp("slurm")
    ports = {"CONTROLLER_PORT": free_port(), "NODE_PORT": free_port(), "CPUS": "2", "GPUS": "2"}
    environment = {**os.environ, **ports}
    started = subprocess.run(
        [SCRIPT, "start", state], capture_output=True, text=True, env=environment
    )
    try:
        if started.returncode:
            pytest.skip(f"SLURM tests did not run: {started.stderr.strip()}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", str(state / "slurm.conf"))
            yield
            call("scancel", "--user=root")
    finally:
        subprocess.run([SCRIPT, "stop", state], check=True)


def call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wait_until(condition: Callable[[], object], seconds: float = 150.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, call("squeue") + call("scontrol", "show", "job")
        time.sleep(0.2)


def states(directory: Path) -> dict[str, int]:
    return counts(read_statuses(directory))


def let_held_jobs_start() -> None:
    """SLURM makes a job that was queued again wait two minutes; tests do not."""
    for line in call("squeue", "--noheader", "--array", "--format=%A %r").splitlines():
        job, _, reason = line.strip().partition(" ")
        if reason == "BeginTime":
            call("scontrol", "update", f"JobId={job}", "StartTime=now")


def no_jobs_left() -> bool:
    # Not only all runs done: a job still tidies up after its run and gives its lease back.
    let_held_jobs_start()
    return not call("squeue", "--noheader")


def test_a_preempted_sweep_ends_in_the_same_results(undisturbed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "a sweep"
    output = run_sweep(directory, *ON_SLURM)
    assert "submitted 8 runs in 8 jobs" in output
    # A second submission adds nothing while the first one's jobs are there, or have ended.
    assert "submitted 0 runs in 0 jobs" in run_sweep(directory, *ON_SLURM)
    wait_until(lambda: list(directory.glob("*/checkpoints/step-*")))
    call("sbatch", "--partition=high", "--ntasks=2", "--output=/dev/null", "--wrap=sleep 1")
    wait_until(lambda: "Restarts=1" in call("scontrol", "show", "job"))
    wait_until(no_jobs_left)
    assert states(directory) == {"done": 8}
    assert_same_results(directory, undisturbed)
    logs = "".join(path.read_text() for path in directory.glob("slurm/*/*.out"))
    assert "is queued again" in logs
    assert not list(directory.rglob("lease.json*"))
    assert "8 runs, 8 done" in run_sweep(directory, *ON_SLURM, "--wait")


def test_runs_share_jobs_and_waiting_ends_when_all_are_done(
    undisturbed: Path, tmp_path: Path
) -> None:
    sharing = ("--runs-per-job", "4", "--runs-at-once", "2", "--gres", "gpu:1", "--mem-gb", "1")
    sharing += ("--device", "cpu")
    output = run_sweep(tmp_path / "out", *ON_SLURM, *sharing, "--wait")
    assert "submitted 8 runs in 2 jobs" in output
    assert "[8/8]" in output
    assert [num_processes(run) for run in run_directories(tmp_path / "out")] == [1] * 8
    assert_same_results(tmp_path / "out", undisturbed)


def test_a_cancelled_job_saves_and_stays_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    file.write_text(
        '{"methods": ["icl-tiny"], "overrides":'
        ' {"num_steps": 20000, "batch_size": 32, "evaluation.num_sequences": 48}}'
    )
    directory = tmp_path / "out"
    run_sweep(directory, *ON_SLURM, sweep=file)
    wait_until(lambda: list(directory.glob("*/checkpoints/step-*")))
    call("scancel", "--user=root")
    wait_until(no_jobs_left)
    (status,) = read_statuses(directory)
    assert status.state == "stopped"
    assert (status.path / "checkpoints" / f"step-{status.step}" / "resume.pt").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="its GPUs would not be fakes")
def test_a_job_that_cannot_use_its_gpu_fails_instead_of_computing_without(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text('{"methods": ["classic"]}')
    with pytest.raises(AssertionError, match="this machine has no CUDA device"):
        run_sweep(tmp_path / "out", *ON_SLURM, "--gres", "gpu:1", "--wait", sweep=file)
    assert states(tmp_path / "out") == {"failed": 1}


def test_what_slurm_refuses_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="invalid partition"):
        run_sweep(tmp_path / "out", "--on", "slurm", "--partition", "nowhere")
