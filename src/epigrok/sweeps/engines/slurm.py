"""The engine for SLURM, through submitit: job arrays whose jobs are pools of the local engine.

A job that is preempted or runs out of time lets its workers save and requeues itself. Everything
about a run is in its directory. The engine asks SLURM only which jobs it still has, so that a
second submission adds no run twice. Each submission has its own folder under `slurm/`, because
submitit finds results by job number, and clusters reuse numbers.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any
from uuid import uuid4

from epigrok.errors import UserError
from epigrok.extras import extra_named
from epigrok.files import make_writable_directory
from epigrok.records.directory import RunDirectory
from epigrok.runs.device import DeviceName
from epigrok.sweeps.engines.local import PoolOptions, RunEnd, run_pool
from epigrok.sweeps.engines.slots import Slot, num_cores
from epigrok.sweeps.engines.slurm_queue import Submission, runs_in_queue

_ALWAYS = 1_000_000
"""Requeues that submitit allows a job; so many that our own code decides, not this limit."""
_RESOLUTION_SECONDS = 60
"""SLURM may send its warning this much too early."""


@dataclass(frozen=True)
class SlurmOptions:
    """What to ask of SLURM for every job."""

    partition: str | None = None
    """slurm: partition to submit to."""
    account: str | None = None
    """slurm: account to charge."""
    qos: str | None = None
    """slurm: quality of service."""
    time_minutes: int = 240
    """slurm: time limit of a job; a longer run is saved and resumes in the next."""
    gres: str | None = None
    """slurm: generic resources, such as gpu:1."""
    cpus: int = 1
    """slurm: cores of a job."""
    mem_gb: float | None = None
    """slurm: memory of a job."""
    parallel_jobs: int = 64
    """slurm: jobs of this submission that may run at once."""
    runs_per_job: int = 1
    """slurm: runs that share a job, where a cluster limits the number of jobs."""
    runs_at_once: int = 1
    """slurm: of those, runs at the same time, if one does not fill a GPU."""
    warning_seconds: int = 90
    """slurm: time between SLURM's warning and the end of a job, enough to save."""
    device: DeviceName = "auto"
    """slurm: where runs compute; by default on the GPUs of their job, if it has any."""
    sbatch: tuple[str, ...] = ()
    """slurm: more options for sbatch, such as constraint=h100 mail-type=FAIL."""
    max_array_size: int = 1000
    """slurm: jobs in one array; larger submissions become several arrays."""
    wait: bool = False
    """slurm: wait until every run is done or has failed."""

    def __post_init__(self) -> None:
        for name in ("cpus", "parallel_jobs", "runs_per_job", "runs_at_once", "max_array_size"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.mem_gb is not None and not 0 < self.mem_gb < inf:
            raise UserError(f"mem_gb must be positive, got {self.mem_gb}")
        if self.time_minutes * 60 <= self.warning_seconds + _RESOLUTION_SECONDS:
            raise UserError(
                f"a time limit of {self.time_minutes} min leaves no time to compute: SLURM warns "
                f"{self.warning_seconds} s before it, or up to {_RESOLUTION_SECONDS} s earlier; "
                "ask for more time"
            )
        for setting in self.sbatch:
            if not setting.partition("=")[0]:
                raise UserError(f"{setting!r} is not an option of sbatch; write name=value")


@dataclass(frozen=True)
class AllocatedRuns:
    """The work of one job; submitit calls it on the machine that SLURM chose."""

    paths: tuple[str, ...]
    options: PoolOptions
    runs_at_once: int
    device: str

    def __call__(self) -> list[tuple[str, str]]:
        """Work on the runs; on a signal to stop, save them and requeue the job."""
        runs = [RunDirectory(Path(path)) for path in self.paths]

        def tell(end: RunEnd) -> None:
            print(f"{end.run.path.name} {end.state} {end.reason}", flush=True)

        ends = run_pool(runs, self._slots(), self.options, tell)
        if any(end.state == "stopped" for end in ends):
            requeue_this_job()
            sys.exit(1)
        return [(end.run.path.name, end.state) for end in ends]

    def checkpoint(self, *arguments: Any, **keywords: Any) -> Any:
        """Requeue the job; submitit calls this if the warning comes before we listen."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, *arguments, **keywords)

    def _slots(self) -> list[Slot]:
        """Slots inside the allocation, spread over its GPUs."""
        count = min(self.runs_at_once, len(self.paths))
        given = os.environ.get("SLURM_CPUS_PER_TASK", "")
        threads = max(1, (int(given) if given.isdigit() else num_cores()) // count)
        shared = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": str(threads)}
        gpus = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        # A job that cannot use its GPU must fail, not compute for hours on the CPU.
        chosen = ("cuda" if gpus else "cpu") if self.device == "auto" else self.device
        return [
            Slot(chosen, shared | {"CUDA_VISIBLE_DEVICES": gpus[k % len(gpus)] if gpus else ""})
            for k in range(count)
        ]


def submit(
    directory: Path, runs: Sequence[RunDirectory], options: PoolOptions, slurm: SlurmOptions
) -> Submission:
    """Submit the runs that have no job yet."""
    queued = runs_in_queue(directory)
    new = [run for run in runs if run.path.name not in queued]
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = (directory / "slurm" / f"{stamp}-{uuid4().hex[:8]}").resolve()
    jobs = [new[k : k + slurm.runs_per_job] for k in range(0, len(new), slurm.runs_per_job)]
    submission = Submission(
        folder=folder,
        jobs=[[run.path.name for run in job] for job in jobs],
        array_size=slurm.max_array_size,
        num_queued=len(runs) - len(new),
    )
    if not jobs:
        return submission
    executor = _executor(folder, slurm)
    # Recorded first: an interrupted submission is found again by the names of its jobs.
    submission.write()
    # An earlier start of the job may still hold a run, on a machine that was cut off.
    patient = replace(options, patience_seconds=2 * options.worker.lease_seconds)
    for name, part in submission.arrays():
        calls = [
            AllocatedRuns(
                tuple(str((directory / run).resolve()) for run in job),
                patient,
                slurm.runs_at_once,
                slurm.device,
            )
            for job in part
        ]
        executor.update_parameters(job_name=name)
        try:
            executor.map_array(_call, calls) if len(calls) > 1 else executor.submit(calls[0])
        except Exception as error:
            raise UserError(f"SLURM refused the jobs: {_first_line(error)}") from error
    return submission


def requeue_this_job() -> None:
    """Requeue the job of this process, unless it was cancelled."""
    job = os.environ["SLURM_JOB_ID"]
    shown = subprocess.run(
        ["scontrol", "show", "job", "--oneliner", job], capture_output=True, text=True, check=False
    )
    # A job that was cancelled, or that SLURM itself requeues, is already ending.
    if shown.returncode == 0 and "JobState=RUNNING" not in shown.stdout:
        print(f"runs are saved; job {job} was ended by SLURM or its user", flush=True)
        return
    result = subprocess.run(
        ["scontrol", "requeue", job], capture_output=True, text=True, check=False
    )
    words = result.stderr.strip()
    print(f"runs are saved; job {job} " + (words or "is queued again"), flush=True)


def _call(job: AllocatedRuns) -> list[tuple[str, str]]:
    return job()


def _executor(folder: Path, slurm: SlurmOptions) -> Any:
    with extra_named():
        import submitit
    make_writable_directory(folder)
    try:
        executor = submitit.SlurmExecutor(folder=folder, max_num_timeout=_ALWAYS)
    except RuntimeError as error:
        raise UserError("this machine has no SLURM: srun is not on the PATH") from error
    further = {"requeue": True}
    for setting in slurm.sbatch:
        key, _, value = setting.partition("=")
        further[key.lstrip("-")] = value or True  # type: ignore[assignment]
    asked = {
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "gres": slurm.gres,
        "mem": None if slurm.mem_gb is None else f"{round(slurm.mem_gb * 1024)}MB",
    }
    executor.update_parameters(
        time=slurm.time_minutes,
        cpus_per_task=slurm.cpus,
        array_parallelism=slurm.parallel_jobs,
        signal_delay_s=slurm.warning_seconds,
        additional_parameters=further,
        **{name: value for name, value in asked.items() if value is not None},
    )
    return executor


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
