"""The worker that every engine starts: one process that does one run, or several in turn."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, TextIO

import tyro

from epigrok.config.checks import require_non_negative, require_positive
from epigrok.files import own_path
from epigrok.records.directory import RunDirectory
from epigrok.records.holder import LEASE_SECONDS

SECONDS_BETWEEN_LOOKS = 1.0
_TAIL_BYTES = 4096


@dataclass(frozen=True)
class WorkerOptions:
    """How workers execute their runs; no option changes a number."""

    checkpoint_seconds: float = 60.0
    """Time between checkpoints, the most work that a kill can lose."""
    lease_seconds: float = LEASE_SECONDS
    """Time without a sign of life after which another machine may take a run over."""
    keep: Literal["weights", "tables"] = "weights"
    """What a finished run keeps: its weights and tables, or its tables alone."""
    plugins: Annotated[tuple[str, ...], tyro.conf.Suppress] = ()
    """Plugin files that the runs need."""

    def __post_init__(self) -> None:
        require_non_negative(checkpoint_seconds=self.checkpoint_seconds)
        require_positive(lease_seconds=self.lease_seconds)


def start_worker(
    runs: Sequence[RunDirectory],
    options: WorkerOptions,
    device: str,
    environment: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """Start a process that works on `runs`, one after the other, and prints into their logs.

    The worker has its own session, so Ctrl-C in a terminal reaches only the engine, which then
    asks the worker once. It saves and exits when the process that started it is gone.
    """
    paths = [str(run.path.resolve()) for run in runs]
    command = [sys.executable, "-m", "epigrok", "run", *paths]
    command += ["--device", device, "--driver-pid", str(os.getpid())]
    command += ["--checkpoint-seconds", str(options.checkpoint_seconds)]
    command += ["--lease-seconds", str(options.lease_seconds), "--keep", options.keep]
    for plugin in options.plugins:
        command += ["--plugin", plugin]
    with opened_log(runs[0]) as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment},
        )


def opened_log(run: RunDirectory) -> TextIO:
    """Open the log of a run for a worker that starts now."""
    log = own_path(run.path, run.log.name).open("a", encoding="utf-8", errors="replace")
    log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')}\n")
    log.flush()
    return log


def stop_without_driver(driver_pid: int) -> None:
    """Make this process save and exit once the process that started it is gone."""

    def watch() -> None:
        while os.getppid() == driver_pid:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def reason_of_failure(run: RunDirectory, exit_code: int) -> str:
    """Why a worker did not finish: from its signal, its status or the end of its log."""
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    status = run.status()
    if status.get("state") == "failed" and "reason" in status:
        return str(status["reason"])
    return last_line(run) or f"ended with exit code {exit_code}"


def last_line(run: RunDirectory) -> str:
    """The last line of a run's log that is not empty."""
    try:
        with run.log.open("rb") as log:
            log.seek(max(0, run.log.stat().st_size - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
