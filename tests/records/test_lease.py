"""At most one process works on a run, whoever dies when."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epigrok import workspace
from epigrok.errors import UserError
from epigrok.records import lease as lease_module
from epigrok.records.holder import LEASE, read_holder
from epigrok.records.lease import (
    Lease,
    LeaseHeldError,
    LeaseLostError,
    acquire,
    hold_lease,
    is_held,
)

CONTENDER = """
import sys
from pathlib import Path
from epigrok.records.lease import LeaseHeldError, acquire
for line in sys.stdin:
    try:
        lease = acquire(Path(line.strip()))
        print("won", flush=True)
    except LeaseHeldError:
        lease = None
        print("refused", flush=True)
    sys.stdin.readline()
    if lease is not None:
        lease.release()
    print("ready", flush=True)
"""


def write_lease(path: Path, age: float = 0.0, name: str = LEASE, **changes: object) -> None:
    """A lease of somebody on another machine."""
    holder = {
        "token": "a-token",
        "host": "elsewhere",
        "machine": "elsewhere",
        "pid": 1,
        "process_start": "1",
        "job": "",
        "job_restarts": 0,
        "seconds": 60.0,
    }
    (path / name).write_text(json.dumps(holder | changes))
    os.utime(path / name, (time.time() - age,) * 2)


def ours(path: Path) -> dict[str, object]:
    """What a lease of this very process says."""
    with hold_lease(path):
        return json.loads((path / LEASE).read_text())


def contender() -> subprocess.Popen[str]:
    """A process that asks for the lease on every directory it is told, and says how it went."""
    command = [sys.executable, "-c", CONTENDER]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell_all(contenders: list[subprocess.Popen[str]], line: str) -> list[str]:
    """Their answers; all are told before any is asked."""
    for process in contenders:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    return [process.stdout.readline().strip() for process in contenders if process.stdout]


def wait_for_refusal(lease: Lease, deadline: float) -> None:
    while time.monotonic() < deadline:
        lease.require_held()
        time.sleep(0.01)


def test_a_lease_is_held_by_one_and_given_back(tmp_path: Path) -> None:
    with hold_lease(tmp_path):
        assert is_held(tmp_path)
        with pytest.raises(LeaseHeldError, match=f"worked on by process {os.getpid()} on"):
            acquire(tmp_path)
    assert not is_held(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lease_is_given_back_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a failure"), hold_lease(tmp_path):
        raise RuntimeError("a failure")
    acquire(tmp_path).release()


def test_a_killed_process_of_this_machine_loses_its_lease_at_once(tmp_path: Path) -> None:
    process = contender()
    assert tell_all([process], str(tmp_path)) == ["won"]
    with pytest.raises(LeaseHeldError):
        acquire(tmp_path)
    process.kill()
    # Not yet waited for, it still has a process number; that does not make it alive.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    acquire(tmp_path).release()
    process.communicate()


def test_another_process_with_the_same_number_is_not_the_holder(tmp_path: Path) -> None:
    holder = ours(tmp_path)
    write_lease(tmp_path, **holder)
    with pytest.raises(LeaseHeldError):
        acquire(tmp_path)
    write_lease(tmp_path, **holder | {"process_start": "12"})
    acquire(tmp_path).release()


@pytest.mark.parametrize(("age", "is_respected"), [(0.0, True), (50.0, True), (70.0, False)])
def test_a_holder_elsewhere_lives_as_long_as_its_heart_beats(
    age: float, is_respected: bool, tmp_path: Path
) -> None:
    write_lease(tmp_path, age)
    assert is_held(tmp_path) == is_respected
    if is_respected:
        with pytest.raises(LeaseHeldError, match="elsewhere"):
            acquire(tmp_path)
    else:
        acquire(tmp_path).release()


def test_a_requeued_job_takes_over_from_its_earlier_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lease(tmp_path, job="17", job_restarts=0)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    with pytest.raises(LeaseHeldError, match="job 17"):
        acquire(tmp_path)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    acquire(tmp_path).release()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": 3}'])
def test_an_unreadable_lease_counts_by_its_age(content: str, tmp_path: Path) -> None:
    (tmp_path / LEASE).write_text(content)
    with pytest.raises(LeaseHeldError):
        acquire(tmp_path)
    os.utime(tmp_path / LEASE, (time.time() - 100,) * 2)
    acquire(tmp_path).release()


def test_who_dies_while_taking_over_is_taken_over_in_turn(tmp_path: Path) -> None:
    write_lease(tmp_path, age=100, token="a")
    write_lease(tmp_path, age=100, token="b", name=f"{LEASE}.after-a")
    write_lease(tmp_path, age=100, token="c", name=f"{LEASE}.after-b")
    write_lease(tmp_path, age=100, token="d", name=f"{LEASE}.d")
    with hold_lease(tmp_path):
        holder = read_holder(tmp_path)
        assert holder is not None
        assert holder.pid == os.getpid()
        names = [path.name for path in tmp_path.iterdir()]
        assert sorted(names) == sorted([LEASE, f".work-{holder.token}"])


def test_who_is_taking_over_keeps_others_away(tmp_path: Path) -> None:
    write_lease(tmp_path, age=100, token="a")
    write_lease(tmp_path, token="b", name=f"{LEASE}.after-a")
    with pytest.raises(LeaseHeldError):
        acquire(tmp_path)


def test_of_many_contenders_for_a_dead_holders_lease_one_wins(tmp_path: Path) -> None:
    contenders = [contender() for _ in range(6)]
    for number in range(40):
        run = tmp_path / str(number)
        run.mkdir()
        write_lease(run, age=100)
        if number % 2:
            write_lease(run, age=100, token="dead", name=f"{LEASE}.after-a-token")
        assert sorted(tell_all(contenders, str(run))) == ["refused"] * 5 + ["won"]
        assert set(tell_all(contenders, "")) == {"ready"}
    for process in contenders:
        process.communicate()


def test_a_heart_beats_and_notices_when_the_lease_is_gone(tmp_path: Path) -> None:
    lease = acquire(tmp_path, seconds=0.2)
    os.utime(tmp_path / LEASE, (0, 0))
    deadline = time.monotonic() + 20
    while (tmp_path / LEASE).stat().st_mtime == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / LEASE).stat().st_mtime > 0
    lease.require_held()
    write_lease(tmp_path, name="other", token="other")
    (tmp_path / "other").replace(tmp_path / LEASE)
    with pytest.raises(LeaseLostError, match="taken over"):
        wait_for_refusal(lease, deadline)
    lease.release()
    assert is_held(tmp_path)


def test_who_was_stopped_for_long_looks_before_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The heart beats four times an hour, so it is not the one to notice.
    lease = acquire(tmp_path, seconds=3600.0)
    write_lease(tmp_path, name="other", token="other")
    (tmp_path / "other").replace(tmp_path / LEASE)
    lease.require_held()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3700.0)
    with pytest.raises(LeaseLostError, match="taken over"):
        lease.require_held()
    lease.release()


def test_a_clock_that_is_ahead_makes_nobody_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lease(tmp_path)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 120.0)
    assert is_held(tmp_path)
    with pytest.raises(LeaseHeldError):
        acquire(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LEASE]


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e6, float("inf"), float("nan")])
def test_a_lease_without_time_is_refused(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lease_seconds must lie in \(0, 86400\]"):
        acquire(tmp_path, seconds)
    assert list(tmp_path.iterdir()) == []


def test_who_hung_while_asking_is_told_that_others_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swept_up(operation: workspace.Operation, path: Path) -> None:
        if path == tmp_path / LEASE:
            for left in tmp_path.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    monkeypatch.setattr(workspace, "announce", swept_up)
    with pytest.raises(LeaseLostError, match="has taken over"):
        acquire(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_taken_over", [False, True])
def test_who_hung_before_asking_can_give_the_lease_back(
    is_taken_over: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier holder took its workspace away; perhaps another one takes over just then."""
    other = {"token": "other", "host": "h", "machine": "m", "pid": 1, "process_start": ""}
    other |= {"job": "", "job_restarts": 0, "seconds": 60}

    def meanwhile(operation: workspace.Operation, path: Path) -> None:
        if path.name.startswith(f"{LEASE}.") and operation == "create":
            for found in tmp_path.glob(".work-*"):
                found.rmdir()
        if path.name.startswith(".work-") and (tmp_path / LEASE).exists() and is_taken_over:
            (tmp_path / LEASE).write_text(json.dumps(other))
            (tmp_path / ".work-other").mkdir(exist_ok=True)

    monkeypatch.setattr(workspace, "announce", meanwhile)
    if is_taken_over:
        with pytest.raises(LeaseLostError, match="has taken over"):
            acquire(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {LEASE, ".work-other"}
        return
    lease = acquire(tmp_path)
    lease.workspace.write_file(tmp_path / "file", "")
    lease.release()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_lease_that_cannot_be_kept_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(lease_module, "Lease", fail)
    with pytest.raises(OSError, match="Too many open files"):
        acquire(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_moved_away_is_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()

    def work() -> None:
        with hold_lease(run) as lease:
            run.rename(tmp_path / "elsewhere")
            lease.workspace.write_file(run / "file", "x")

    with pytest.raises(LeaseLostError, match="run was moved or removed while this process"):
        work()
    assert not (tmp_path / "elsewhere" / "file").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
