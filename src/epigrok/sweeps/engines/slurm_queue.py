"""Find the runs that have SLURM jobs, and wait for these jobs."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epigrok.files import write_json
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import is_held
from epigrok.runs.interruption import stop_on_signal
from epigrok.sweeps.engines.local import RunEnd

_RECORD = "submission.json"
_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_BETWEEN_SQUEUES = 10.0
SECONDS_OF_DOUBT = 20.0
"""A shared file system may show a job's files this long after the job is gone."""


@dataclass(frozen=True)
class Submission:
    """Jobs submitted together; the name of its array and its index identify a job."""

    folder: Path
    """Folder of submitit's logs."""
    jobs: list[list[str]]
    """Run ids of each job."""
    array_size: int
    num_queued: int = 0
    """Runs left out because an earlier submission still has jobs for them."""

    @property
    def summary(self) -> str:
        """One line on what was submitted."""
        number = sum(map(len, self.jobs))
        text = f"submitted {number} runs in {len(self.jobs)} jobs"
        if self.jobs:
            text += f"; logs in {self.folder}"
        return text + (f"; {self.num_queued} already have jobs" if self.num_queued else "")

    def arrays(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Name and jobs of each array."""
        for k in range(0, len(self.jobs), self.array_size):
            yield (
                f"epigrok-{self.folder.name.rpartition('-')[2]}-{k}",
                self.jobs[k : k + self.array_size],
            )

    def write(self) -> None:
        """Record which job has which runs."""
        write_json(self.folder / _RECORD, {"jobs": self.jobs, "array_size": self.array_size})


def runs_in_queue(directory: Path) -> set[str]:
    """Runs with a SLURM job that waits or runs."""
    runs_of_job: dict[tuple[str, int], list[str]] = {}
    for record in directory.glob(f"slurm/*/{_RECORD}"):
        values = json.loads(record.read_text())
        submission = Submission(record.parent, values["jobs"], values["array_size"])
        for name, jobs in submission.arrays():
            runs_of_job |= {(name, index): job for index, job in enumerate(jobs)}
    if not runs_of_job:
        return set()
    names = ",".join(sorted({name for name, _ in runs_of_job}))
    command = ["squeue", "--noheader", "--array", f"--name={names}", "--format=%j %K"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return set()  # the lease still keeps a second worker from a run
    queued: set[str] = set()
    for line in listing.stdout.splitlines():
        name, _, index = line.strip().partition(" ")
        queued |= set(runs_of_job.get((name, int(index) if index.isdigit() else 0), []))
    return queued


def wait_for_jobs(
    directory: Path, runs: Sequence[RunDirectory], tell: Callable[[RunEnd], None]
) -> list[RunEnd]:
    """Wait until every run is done or failed, or no job is left that could finish it.

    A stopping signal ends the waiting and leaves the jobs alone.
    """
    ends: list[RunEnd] = []

    def conclude(end: RunEnd) -> None:
        ends.append(end)
        tell(end)

    left = list(runs)
    started = last_squeue = last_job_seen = time.time()
    with stop_on_signal() as stop:
        while left and not stop:
            for run in list(left):
                end = _end(run, started)
                if end is not None:
                    left.remove(run)
                    conclude(end)
            now = time.time()
            if now - last_squeue > _SECONDS_BETWEEN_SQUEUES:
                last_squeue = now
                queued = runs_in_queue(directory)
                if any(run.path.name in queued or is_held(run.path) for run in left):
                    last_job_seen = now
            if now - last_job_seen > _SECONDS_BETWEEN_SQUEUES + SECONDS_OF_DOUBT:
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS if left else 0.0)
    reason = f"its job is gone; see the logs in {directory / 'slurm'}"
    for run in left:
        unfinished = RunEnd(run, "stopped") if stop else RunEnd(run, "failed", reason)
        # It may have ended since the last look.
        conclude(_end(run, started) or unfinished)
    return ends


def _end(run: RunDirectory, since: float) -> RunEnd | None:
    if run.is_done:
        return RunEnd(run, "done")
    status = run.status()
    is_new = status.get("updated", 0.0) > since
    if status.get("state") == "failed" and is_new and not is_held(run.path):
        return RunEnd(run, "failed", str(status.get("reason", "unknown")))
    return None
