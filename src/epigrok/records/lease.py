"""The lease on a run directory: at most one process works on a run, on any number of machines.

`lease.json` says who holds it; its modification time is the holder's heartbeat. Only `link` and
`rename` are used, which are atomic on local and on network file systems, and no locks, which many
clusters switch off. A holder on the same machine counts as dead when its process is gone, one
elsewhere when its heartbeat is older than it promised.

To take over from a dead holder with token T, a process first puts its own lease under the name
`lease.json.after-T`, which only one process can, and then renames it to `lease.json`. If it dies in
between, its claim is taken over in the same way.

A holder that only hung does not know that it was given up. So all its changes go through a
workspace of its own, `.work-T`, made before it asked for the lease; the first act of a successor is
to take all other workspaces away, and from then on nobody else can change the run.
"""

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

from epigrok.config.checks import require
from epigrok.errors import UserError
from epigrok.files import Workspace, WorkspaceGoneError

LEASE = "lease.json"
SECONDS = 60.0
"""Age of a heartbeat after which a holder on another machine counts as dead."""
LONGEST = 86_400.0
"""A day: a lease that never ends would keep a run from being taken over for ever."""
BEATS_PER_LEASE = 4
_WORKSPACE = ".work-"
_ATTEMPTS = 8


class LeaseHeldError(UserError):
    """Somebody else is working on the run."""


class LeaseLostError(RuntimeError):
    """Somebody else took the run over, believing this process dead."""

    def __init__(self, run_path: Path) -> None:
        super().__init__(
            f"another process has taken over {run_path} while this one hung; it stops here and "
            "has changed nothing since"
        )


@dataclass(frozen=True)
class Holder:
    """Who a lease belongs to."""

    token: str
    host: str
    machine: str
    """Host, boot and process namespace: where `pid` means something."""
    pid: int
    process_start: str
    """Tells a process from a later one with the same number; empty where unknown."""
    job: str
    """Scheduler's job number, or empty."""
    job_restarts: int
    seconds: float
    """Age of the heartbeat at which the holder wants to be counted as dead."""
    heartbeat: float = 0.0

    def is_alive(self, now: float | None = None) -> bool:
        """Whether the lease is in force at the time `now` of the file system's clock."""
        if self.machine == _this_machine():
            return _is_running(self.pid, self.process_start)
        if self.job and self.job == _job()[0] and self.job_restarts < _job()[1]:
            return False  # an earlier life of the very job that asks
        return (time.time() if now is None else now) - self.heartbeat <= self.seconds

    def __str__(self) -> str:
        job = f", job {self.job}" if self.job else ""
        return f"process {self.pid} on {self.host}{job}"


class Lease:
    """A lease held by this process, kept alive by a thread of its own."""

    def __init__(self, path: Path, token: str, seconds: float, workspace: Workspace) -> None:
        self._path, self._token, self._seconds = path, token, seconds
        self.workspace = workspace
        """Through which alone the run may be changed."""
        self._is_lost = False
        self._last_beat = time.time()
        self._is_released = threading.Event()
        # The file of this lease, whatever happens to its name: a beat never revives another's.
        self._file = path.open("rb")
        self._pulse = threading.Thread(target=self._beat, daemon=True)
        self._pulse.start()

    def require_held(self) -> None:
        """Raise unless the run is still this process's to write to."""
        if time.time() - self._last_beat > self._seconds:
            # The whole process was stopped, its heart too: others may have given it up since.
            self._is_lost = _token_at(self._path) != self._token
        if self._is_lost:
            raise LeaseLostError(self._path.parent)

    def release(self) -> None:
        """Let others work on the run."""
        self._is_released.set()
        self._pulse.join()
        self._file.close()
        # By way of the workspace, so that a successor's lease cannot be removed for ours.
        with suppress(WorkspaceGoneError):
            if _token_at(self._path) == self._token:
                self.workspace.remove(self._path)
            self.workspace.close()

    def _beat(self) -> None:
        while not self._is_lost and not self._is_released.wait(self._seconds / BEATS_PER_LEASE):
            # A file system that fails for a moment is no reason to stop.
            with suppress(OSError):
                os.utime(self._file.fileno())
                self._is_lost = _token_at(self._path) != self._token
                self._last_beat = time.time()


@contextmanager
def hold_lease(run_path: Path, seconds: float = SECONDS) -> Iterator[Lease]:
    """Hold the lease on a run for the length of a block, or raise `LeaseHeldError`."""
    lease = acquire(run_path, seconds)
    try:
        yield lease
    except WorkspaceGoneError:
        raise LeaseLostError(run_path) from None
    finally:
        lease.release()


def acquire(run_path: Path, seconds: float = SECONDS) -> Lease:
    """Take the lease on a run, also from a dead holder."""
    require(0.0 < seconds <= LONGEST, f"lease_seconds must lie in (0, {LONGEST:g}], got {seconds}")
    path, token = run_path / LEASE, uuid4().hex
    candidate = run_path / f"{LEASE}.{token}"
    job, restarts = _job()
    content = {
        "token": token,
        "host": socket.gethostname(),
        "machine": _this_machine(),
        "pid": os.getpid(),
        "process_start": _process_start(os.getpid()),
        "job": job,
        "job_restarts": restarts,
        "seconds": seconds,
    }
    workspace = Workspace(run_path / f"{_WORKSPACE}{token}")
    try:
        with candidate.open("x") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        is_ours = _put(candidate, path, token)
    finally:
        candidate.unlink(missing_ok=True)
    if not is_ours:
        workspace.close()
        holder = read_holder(run_path) or "another process"
        raise LeaseHeldError(f"{run_path} is being worked on by {holder}; let it finish or stop it")
    lease = Lease(path, token, seconds, workspace)
    try:
        _take_workspaces_away(run_path, workspace)
        _sweep_up(run_path)
    except WorkspaceGoneError:
        # This process hung so long while it asked that somebody took over already.
        lease.release()
        raise LeaseLostError(run_path) from None
    return lease


def read_holder(run_path: Path) -> Holder | None:
    """Who holds the lease on a run, dead or alive; None if nobody does."""
    return _holder_at(run_path / LEASE)


def is_held(run_path: Path) -> bool:
    """Whether a living process works on the run."""
    holder = read_holder(run_path)
    # Clocks of machines differ: before a holder counts as dead, the file system's own is asked.
    return holder is not None and (
        holder.is_alive() or holder.is_alive(now=_file_system_time(run_path))
    )


def _put(candidate: Path, path: Path, token: str) -> bool:
    """Give the file of `candidate` the name `path`, which must be free or a dead holder's."""
    for _ in range(_ATTEMPTS):
        try:
            _link(candidate, path)
            return True
        except FileExistsError:
            holder = _holder_at(path)
        if holder is None:
            continue  # released since
        if holder.token == token:
            return True  # a network file system did it, lost its answer and tried once more
        # The file just written tells the time by the clock that stamps the heartbeats.
        if holder.is_alive(now=candidate.stat().st_mtime):
            return False
        claim = path.with_name(f"{LEASE}.after-{holder.token}")
        if not _put(candidate, claim, token):
            return False
        if _token_at(claim) == token:
            # Gone only if this process hung so long that its claim was taken over.
            with suppress(FileNotFoundError):
                claim.replace(path) if _token_at(path) == holder.token else claim.unlink()
        if _token_at(path) == token:
            return True
    return False


def _link(candidate: Path, path: Path) -> None:
    try:
        os.link(candidate, path)
    except FileExistsError:
        raise
    except OSError:
        # No hard links here. A lease caught half written is respected until it is old.
        with path.open("xb") as file:
            file.write(candidate.read_bytes())


def _holder_at(path: Path) -> Holder | None:
    try:
        # Opening, not only asking for the time, makes a network file system look again.
        with path.open("rb") as file:
            found, content = os.fstat(file.fileno()), file.read()
    except FileNotFoundError:
        return None
    try:
        return Holder(**json.loads(content), heartbeat=found.st_mtime)
    except (ValueError, TypeError):
        unreadable = f"unreadable-{found.st_ino}-{found.st_mtime_ns}"
        host = f"an unknown host (its {path.name} is damaged and counts for {SECONDS:g} s)"
        return Holder(unreadable, host, "", 0, "", "", 0, SECONDS, found.st_mtime)


def _token_at(path: Path) -> str | None:
    holder = _holder_at(path)
    return None if holder is None else holder.token


def _take_workspaces_away(run_path: Path, own: Workspace) -> None:
    """Stop everybody who held or wanted the lease before from changing the run."""
    for other in run_path.glob(f"{_WORKSPACE}*"):
        if other != own.path:
            own.remove(other)


def _sweep_up(run_path: Path) -> None:
    """Remove what processes killed while asking for the lease have left."""
    for leftover in run_path.glob(f"{LEASE}.*"):
        holder = _holder_at(leftover)
        if holder is not None and not holder.is_alive():
            leftover.unlink(missing_ok=True)


def _file_system_time(directory: Path) -> float:
    """The time by the clock that stamps files; this machine's own where nothing can be written."""
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".clock-") as probe:
            return os.fstat(probe.fileno()).st_mtime
    except OSError:
        return time.time()


def _job() -> tuple[str, int]:
    restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
    return os.environ.get("SLURM_JOB_ID", ""), int(restarts) if restarts.isdigit() else 0


@cache
def _this_machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {boot} {namespace}"


def _process_start(pid: int) -> str:
    """When a process of this machine started, as far as the system tells; empty otherwise."""
    try:
        return _process_fields(pid)[19]
    except OSError:
        return ""


def _is_running(pid: int, process_start: str) -> bool:
    try:
        fields = _process_fields(pid)
    except OSError:
        # No /proc, or one that hides the processes of others.
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
    """State and what follows it in /proc; the name before it may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
