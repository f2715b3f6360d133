"""Who holds the lease on a run, and whether that process still lives."""

import os
import re
import socket
import stat
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from epigrok.files import parse_json

LEASE = "lease.json"
LEASE_SECONDS = 60.0
"""Age of a heartbeat after which a holder on another machine counts as dead."""
LONGEST_LEASE = 86_400.0
"""A day: nobody could ever take over a run whose lease never ends."""
_TOKEN = re.compile(r"[0-9a-zA-Z-]{1,64}")
_KINDS: dict[str, Any] = {
    "token": str,
    "host": str,
    "machine": str,
    "pid": int,
    "process_start": str,
    "job": str,
    "job_restarts": int,
    "seconds": int | float,
}


@dataclass(frozen=True)
class Holder:
    """The process that a lease belongs to."""

    token: str
    host: str
    machine: str
    """Host, boot and process namespace: the place where `pid` is valid."""
    pid: int
    process_start: str
    """Distinguishes a process from a later one with the same number; empty if unknown."""
    job: str
    """Scheduler's job number, or empty."""
    job_restarts: int
    seconds: float
    """Age of the heartbeat from which on the holder counts as dead."""
    heartbeat: float = 0.0

    def is_alive(self, now: float | None = None) -> bool:
        """Whether the lease is in force at the time `now` of the file system's clock."""
        if self.machine == this_machine():
            return _is_running(self.pid, self.process_start)
        if self.job and self.job == this_job()[0] and self.job_restarts < this_job()[1]:
            return False  # an earlier life of the very job that asks
        return (time.time() if now is None else now) - self.heartbeat <= self.seconds

    def __str__(self) -> str:
        job = f", job {self.job}" if self.job else ""
        return f"process {self.pid} on {self.host}{job}"


def read_holder(run_path: Path) -> Holder | None:
    """Who holds the lease on a run, dead or alive; None if nobody does."""
    return holder_at(run_path / LEASE)


def holder_at(path: Path) -> Holder | None:
    """Who wrote the lease or claim at `path`; None if there is none."""
    try:
        # Opening the file, not only reading its time, refreshes the cache of a network file system.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            content = file.read() if stat.S_ISREG(found.st_mode) else b""
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return _holder(parse_json(content), found.st_mtime)
    except (ValueError, TypeError, KeyError):
        unreadable = f"unreadable-{found.st_ino}-{found.st_mtime_ns}"
        host = f"an unknown host (its {path.name} is damaged and counts for {LEASE_SECONDS:g} s)"
        return Holder(unreadable, host, "", 0, "", "", 0, LEASE_SECONDS, found.st_mtime)


def _holder(values: Any, heartbeat: float) -> Holder:
    """The holder that a lease names; raises if a part of it has the wrong type."""
    for name, kind in _KINDS.items():
        if not isinstance(values[name], kind):
            raise TypeError(f"{name} is {values[name]!r}")
    # It becomes part of a file's name.
    if not _TOKEN.fullmatch(values["token"]):
        raise ValueError(f"{values['token']!r} is not a token")
    seconds = min(float(values["seconds"]), LONGEST_LEASE)
    known = {name: values[name] for name in _KINDS}
    return Holder(**known | {"seconds": seconds}, heartbeat=heartbeat)


def token_at(path: Path) -> str | None:
    """The token of the lease at `path`."""
    holder = holder_at(path)
    return None if holder is None else holder.token


def this_job() -> tuple[str, int]:
    """Scheduler's job number, and how often the job was restarted."""
    restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
    return os.environ.get("SLURM_JOB_ID", ""), int(restarts) if restarts.isdigit() else 0


@cache
def this_machine() -> str:
    """Host, boot and process namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {boot} {namespace}"


def process_start_of(pid: int) -> str:
    """When a process of this machine started; empty where the system does not say."""
    try:
        return _process_fields(pid)[19]
    except OSError:
        return ""


def _is_running(pid: int, process_start: str) -> bool:
    try:
        fields = _process_fields(pid)
    except OSError:
        # There is no /proc, or it hides the processes of other users.
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    is_ended = fields[0] in ("Z", "X")
    return not is_ended and process_start in ("", fields[19])


def _process_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before it may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
