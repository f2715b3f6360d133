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
from pathlib import Path
from typing import Any
from uuid import uuid4

from epigrok.config.checks import require
from epigrok.errors import UserError
from epigrok.records.holder import (
    LEASE,
    LONGEST,
    SECONDS,
    holder_at,
    process_start_of,
    read_holder,
    this_job,
    this_machine,
    token_at,
)
from epigrok.workspace import Workspace, WorkspaceGoneError, change

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
            self._is_lost = token_at(self._path) != self._token
        if self._is_lost:
            raise LeaseLostError(self._path.parent)

    def release(self) -> None:
        """Let others work on the run."""
        self._is_released.set()
        self._pulse.join()
        self._file.close()
        # By way of the workspace, so that a successor's lease cannot be removed for ours.
        with suppress(WorkspaceGoneError):
            if token_at(self._path) == self._token:
                self.workspace.remove(self._path)
            self.workspace.close()

    def _beat(self) -> None:
        while not self._is_lost and not self._is_released.wait(self._seconds / BEATS_PER_LEASE):
            # A file system that fails for a moment is no reason to stop.
            with suppress(OSError):
                os.utime(self._file.fileno())
                self._is_lost = token_at(self._path) != self._token
                self._last_beat = time.time()


@contextmanager
def hold_lease(run_path: Path, seconds: float = SECONDS) -> Iterator[Lease]:
    """Hold the lease on a run for the length of a block, or raise `LeaseHeldError`."""
    lease = acquire(run_path, seconds)
    try:
        yield lease
    except Exception as error:
        # Whatever failed, if the workspace is gone it failed because of that.
        if isinstance(error, LeaseLostError) or lease.workspace.path.exists():
            raise
        raise LeaseLostError(run_path) from error
    finally:
        lease.release()


def acquire(run_path: Path, seconds: float = SECONDS) -> Lease:
    """Take the lease on a run, also from a dead holder."""
    require(0.0 < seconds <= LONGEST, f"lease_seconds must lie in (0, {LONGEST:g}], got {seconds}")
    path, token = run_path / LEASE, uuid4().hex
    candidate = run_path / f"{LEASE}.{token}"
    job, restarts = this_job()
    content = {
        "token": token,
        "host": socket.gethostname(),
        "machine": this_machine(),
        "pid": os.getpid(),
        "process_start": process_start_of(os.getpid()),
        "job": job,
        "job_restarts": restarts,
        "seconds": seconds,
    }
    workspace = Workspace(run_path / f"{_WORKSPACE}{token}")
    try:
        _write_candidate(candidate, content)
        if not _put(candidate, path, token):
            holder = read_holder(run_path) or "another process"
            raise LeaseHeldError(
                f"{run_path} is being worked on by {holder}; let it finish or stop it"
            )
        lease = Lease(path, token, seconds, workspace)
        try:
            _take_workspaces_away(run_path, workspace)
            # Its last holder, if it woke up right now, may have removed the lease as its own.
            if token_at(path) != token and not _put(candidate, path, token):
                raise WorkspaceGoneError
            _sweep_up(run_path)
        except BaseException as error:
            lease.release()
            if isinstance(error, WorkspaceGoneError):
                # This process hung so long while it asked that somebody took over already.
                raise LeaseLostError(run_path) from None
            raise
        return lease
    except BaseException:
        workspace.close()
        raise
    finally:
        _remove(candidate)


def is_held(run_path: Path) -> bool:
    """Whether a living process works on the run."""
    holder = read_holder(run_path)
    # Clocks of machines differ: before a holder counts as dead, the file system's own is asked.
    return holder is not None and (
        holder.is_alive() or holder.is_alive(now=_file_system_time(run_path))
    )


def _write_candidate(candidate: Path, content: dict[str, Any]) -> None:
    change("create", candidate)
    with candidate.open("x") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())


def _put(candidate: Path, path: Path, token: str) -> bool:
    """Give the file of `candidate` the name `path`, which must be free or a dead holder's."""
    for _ in range(_ATTEMPTS):
        try:
            _link(candidate, path)
            return True
        except FileExistsError:
            holder = holder_at(path)
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
        if token_at(claim) == token:
            # Gone only if this process hung so long that its claim was taken over.
            with suppress(FileNotFoundError):
                if token_at(path) == holder.token:
                    change("rename", path)
                    claim.replace(path)
                else:
                    _remove(claim)
        if token_at(path) == token:
            return True
    return False


def _link(candidate: Path, path: Path) -> None:
    change("create", path)
    try:
        os.link(candidate, path)
    except FileExistsError:
        raise
    except OSError:
        # No hard links here. A lease caught half written is respected until it is old.
        with path.open("xb") as file:
            file.write(candidate.read_bytes())


def _take_workspaces_away(run_path: Path, own: Workspace) -> None:
    """Stop everybody who held or wanted the lease before from changing the run."""
    for other in run_path.glob(f"{_WORKSPACE}*"):
        if other != own.path:
            own.remove(other)


def _sweep_up(run_path: Path) -> None:
    """Remove what processes killed while asking for the lease have left."""
    for leftover in run_path.glob(f"{LEASE}.*"):
        holder = holder_at(leftover)
        if holder is not None and not holder.is_alive():
            _remove(leftover)


def _remove(path: Path) -> None:
    change("remove", path)
    path.unlink(missing_ok=True)


def _file_system_time(directory: Path) -> float:
    """The time by the clock that stamps files; this machine's own where nothing can be written."""
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".clock-") as probe:
            return os.fstat(probe.fileno()).st_mtime
    except OSError:
        return time.time()
