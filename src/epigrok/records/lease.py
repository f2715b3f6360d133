"""The lease on a run directory: at most one process works on a run, on any number of machines.

`lease.json` says who holds it; its modification time is the holder's heartbeat. Only `link` and
`rename` are used, which are atomic on local and on network file systems, and no locks, which many
clusters switch off. A holder on the same machine counts as dead when its process is gone, one
elsewhere when its heartbeat is older than its lease allows.

To take over from a dead holder with token T, a process first puts its own lease under the name
`lease.json.after-T`, which only one process can, and then renames it to `lease.json`. If it dies in
between, its claim is taken over in the same way.

A holder that was only suspended does not know that another process took over. So it makes all its
changes through a workspace of its own, `.work-T`, which exists before it asks for the lease. A
successor first removes all other workspaces; from then on nobody else can change the run.
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
    LEASE_SECONDS,
    LONGEST_LEASE,
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
    """Another process is working on the run."""


class LeaseLostError(RuntimeError):
    """Somebody else took the run over, believing this process dead, or took its directory away."""

    def __init__(self, run_path: Path) -> None:
        if run_path.exists():
            text = f"another process has taken over {run_path} while this one hung"
        else:
            text = f"{run_path} was moved or removed while this process worked on it"
        super().__init__(f"{text}; it stops here and has changed nothing since")


class Lease:
    """A lease held by this process, kept alive by a thread of its own."""

    def __init__(self, path: Path, token: str, seconds: float, workspace: Workspace) -> None:
        self._path, self._token, self._seconds = path, token, seconds
        self.workspace = workspace
        """All changes of the run go through it."""
        self._is_lost = False
        self._last_beat = time.time()
        self._is_released = threading.Event()
        # Held open, so that a heartbeat reaches this lease even if a successor's took its name.
        self._file = path.open("rb")
        self._pulse = threading.Thread(target=self._beat, daemon=True)
        self._pulse.start()

    def require_held(self) -> None:
        """Raise `LeaseLostError` unless this process may still write to the run."""
        if time.time() - self._last_beat > self._seconds:
            # The whole process was suspended, heartbeat included; another may have taken over.
            self._is_lost = token_at(self._path) != self._token
        if self._is_lost:
            raise LeaseLostError(self._path.parent)

    def release(self) -> None:
        """Let others work on the run."""
        self._is_released.set()
        self._pulse.join()
        self._file.close()
        _let_go(self._path, self._token, self.workspace)

    def _beat(self) -> None:
        while not self._is_lost and not self._is_released.wait(self._seconds / BEATS_PER_LEASE):
            # The file system may fail for a moment; the next heartbeat tries again.
            with suppress(OSError):
                os.utime(self._file.fileno())
                self._is_lost = token_at(self._path) != self._token
                self._last_beat = time.time()


@contextmanager
def hold_lease(run_path: Path, seconds: float = LEASE_SECONDS) -> Iterator[Lease]:
    """Hold the lease on a run for the length of a block, or raise `LeaseHeldError`."""
    lease = acquire(run_path, seconds)
    try:
        yield lease
    except Exception as error:
        # If the workspace is gone, that is the reason for any failure.
        if isinstance(error, LeaseLostError) or lease.workspace.path.exists():
            raise
        raise LeaseLostError(run_path) from error
    finally:
        lease.release()


def acquire(run_path: Path, seconds: float = LEASE_SECONDS) -> Lease:
    """Take the lease on a run, also from a dead holder."""
    require(
        0.0 < seconds <= LONGEST_LEASE,
        f"lease_seconds must lie in (0, {LONGEST_LEASE:g}], got {seconds}",
    )
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
            if not workspace.path.exists():
                # Taken away while this process hung before it asked. Whoever takes over from now
                # on finds the new one, because the lease is looked at once it is there.
                workspace.make()
                if token_at(path) != token:
                    raise LeaseLostError(run_path)
            _take_workspaces_away(run_path, workspace)
            # A previous holder that woke up just now may have taken our lease for its own.
            if token_at(path) != token and not _put(candidate, path, token):
                raise LeaseLostError(run_path)
            _sweep_up(run_path)
        except BaseException:
            lease.release()
            raise
        return lease
    except BaseException as error:
        _let_go(path, token, workspace)
        if isinstance(error, WorkspaceGoneError | FileNotFoundError):
            # This process hung so long while it asked that somebody swept up after it.
            raise LeaseLostError(run_path) from None
        raise
    finally:
        _remove(candidate)


def _let_go(path: Path, token: str, workspace: Workspace) -> None:
    """Remove a lease, if it is there, and the workspace."""
    # By way of the workspace, so that a successor's lease cannot be removed for ours.
    with suppress(WorkspaceGoneError):
        if token_at(path) == token:
            workspace.remove(path)
        workspace.close()


def is_held(run_path: Path) -> bool:
    """Whether a living process works on the run."""
    holder = read_holder(run_path)
    # Machines' clocks differ, so the file system's clock must agree before a holder counts as dead.
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
            return True  # a network file system linked it, lost the answer and tried again
        # The new file carries the time of the clock that stamps the heartbeats.
        if holder.is_alive(now=candidate.stat().st_mtime):
            return False
        claim = path.with_name(f"{LEASE}.after-{holder.token}")
        if not _put(candidate, claim, token):
            return False
        if token_at(claim) == token:
            # It is gone only if another process took over the claim while this one was suspended.
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
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        # No hard links here. A lease caught half written is respected until it is old.
        content = candidate.read_bytes()
        with path.open("xb") as file:
            file.write(content)


def _take_workspaces_away(run_path: Path, own: Workspace) -> None:
    """Keep all earlier holders and candidates from changing the run."""
    for other in run_path.glob(f"{_WORKSPACE}*"):
        if other != own.path:
            own.remove(other)


def _sweep_up(run_path: Path) -> None:
    """Remove the files of processes that were killed while they asked for the lease."""
    for leftover in run_path.glob(f"{LEASE}.*"):
        holder = holder_at(leftover)
        if holder is not None and not holder.is_alive():
            _remove(leftover)


def _remove(path: Path) -> None:
    change("remove", path)
    path.unlink(missing_ok=True)


def _file_system_time(directory: Path) -> float:
    """The time of the file system's clock; this machine's where nothing can be written."""
    try:
        with tempfile.NamedTemporaryFile(dir=directory, prefix=".clock-") as probe:
            return os.fstat(probe.fileno()).st_mtime
    except OSError:
        return time.time()
