"""Processes that work on a run and are disturbed at a chosen change of a file.

Every process is a fork of the test's own, so that a run takes a fraction of a second. `announce`
tells of every change before it happens; the changes of a run are numbered in that order.
"""

import errno
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tiny_run import EVALUATION, tiny

import epigrok
from epigrok import files, workspace
from epigrok.cli import main
from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HELD, EXIT_LOST
from epigrok.records import holder, lease
from epigrok.records.lease import LeaseHeldError, LeaseLostError
from epigrok.runs import TrainOptions
from epigrok.workspace import Operation

CONFIG = tiny(
    replace(
        EVALUATION,
        every=2,
        num_sequences=4,
        posteriors=("point",),
        final_series=("context-length",),
    ),
    num_steps=4,
    batch_size=4,
    num_ladder_checkpoints=2,
)
OPTIONS = TrainOptions(checkpoint_seconds=0.0, device="cpu")
"""A checkpoint after every step: as many different situations as a run of seconds can have."""
SHORT = 0.05
"""Seconds of a lease that soon ends."""
ELSEWHERE = "another machine"
Hook = Callable[[int, Operation, Path], None]
_struck = mmap.mmap(-1, 1)
"""Shared with the forks: whether a fault has struck one of them."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    exit_code: int | None
    """None if a signal ended it."""
    output: str


class Process:
    """A fork that works on a run, with a hook before every change.

    Args:
        run: The run directory.
        hook: Called with the number of a change, its kind and its file.
        machine: Pretended to be this process's.
        lease_seconds: Of its lease.
        is_command: Work as `epigrok run` does, on a run that somebody began.
        audit: Told of everything that Python does.
    """

    def __init__(
        self,
        run: Path,
        hook: Hook,
        machine: str | None = None,
        lease_seconds: float = 60.0,
        is_command: bool = False,
        audit: Callable[[str, tuple[Any, ...]], None] | None = None,
    ) -> None:
        self._log = run.with_name(f"{run.name}-{random.getrandbits(64):x}.log")
        self.pid = os.fork()
        if self.pid == 0:
            exit_code = EXIT_FAILED
            try:
                exit_code = self._work(run, hook, machine, lease_seconds, is_command, audit)
            finally:
                # Whatever happens: a second pytest must not go on from here.
                os._exit(exit_code)

    def _work(
        self,
        run: Path,
        hook: Hook,
        machine: str | None,
        lease_seconds: float,
        is_command: bool,
        audit: Callable[[str, tuple[Any, ...]], None] | None,
    ) -> int:
        """In the fork: the exit code; everything that is printed goes to the log."""
        options = replace(OPTIONS, lease_seconds=lease_seconds)
        work = _command if is_command else _train
        with self._log.open("w") as sys.stdout:
            sys.stderr = sys.stdout
            _pretend(hook, machine)
            if audit is not None:
                sys.addaudithook(audit)
            try:
                return work(run, options)
            except BaseException:
                traceback.print_exc()
                raise

    def wait(self) -> Ended | None:
        """Until it ends, or stops itself: then None."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return None
        text = self._log.read_text() if self._log.exists() else ""
        return Ended(os.WEXITSTATUS(status) if os.WIFEXITED(status) else None, text)

    def stop(self) -> Ended | None:
        """Stop it wherever it is; how it ended, if it has."""
        os.kill(self.pid, signal.SIGSTOP)
        return self.wait()

    def go_on(self) -> Ended:
        """Continue one that stopped, to its end."""
        os.kill(self.pid, signal.SIGCONT)
        ended = self.wait()
        assert ended is not None
        return ended


def _pretend(hook: Hook, machine: str | None) -> None:
    """In the fork: listen to changes, and be on another machine if one is named."""
    # Nobody cuts the power here, and waiting for disks would take most of the time.
    os.fsync = lambda descriptor: None
    files.longest_wait = 4 * SHORT
    if machine is not None:
        holder.this_machine = lease.this_machine = lambda: machine  # type: ignore[assignment]
    numbers = iter(range(10**9))
    workspace.announce = lambda operation, path: hook(next(numbers), operation, path)


def _train(run: Path, options: TrainOptions) -> int:
    try:
        epigrok.train(CONFIG, run, options)
    except LeaseLostError as error:
        print(error)
        return EXIT_LOST
    except LeaseHeldError:
        return EXIT_HELD
    except BaseException:
        traceback.print_exc()
        return EXIT_FAILED
    return EXIT_DONE


def _command(run: Path, options: TrainOptions) -> int:
    seconds = {"lease": options.lease_seconds, "checkpoint": options.checkpoint_seconds}
    flags = [f"--{name}-seconds={value}" for name, value in seconds.items()]
    return main(["run", str(run), "--device", "cpu", *flags])


def undisturbed(number: int, operation: Operation, path: Path) -> None:
    """No fault at all."""


def finish(run: Path) -> Ended:
    """Train to the end without faults."""
    ended = Process(run, undisturbed).wait()
    assert ended is not None
    return ended


def changes_of(run: Path) -> list[tuple[str, str]]:
    """The kinds and files of all changes that an undisturbed run makes; it is left in `run`."""
    # Once in this process, so that no fork has to load anything.
    with tempfile.TemporaryDirectory() as folder:
        epigrok.train(CONFIG, folder, OPTIONS)
    record = run.with_name("changes")

    def note(number: int, operation: Operation, path: Path) -> None:
        with record.open("a") as file:
            file.write(f"{operation} {path}\n")

    ended = Process(run, note).wait()
    assert ended == Ended(EXIT_DONE, ""), ended
    found = [line.split(" ", 1) for line in record.read_text().splitlines()]
    return [(operation, path) for operation, path in found]


def unannounced_changes_of(run: Path) -> list[str]:
    """Changes of an undisturbed run that Python sees and nobody announced; it is left in `run`."""
    record = run.with_name("unannounced")
    record.touch()
    announced = Path()

    def note(number: int, operation: Operation, path: Path) -> None:
        nonlocal announced
        announced = path

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        target = _changed_by(event, arguments)
        is_ours = target is not None and run in target.parents
        if is_ours and target != announced and announced not in target.parents:
            os.write(descriptor, f"{event} {target}, after {announced}\n".encode())

    with record.open("wb") as file:
        descriptor = file.fileno()
        process = Process(run, note, audit=audit)
        assert process.wait() == Ended(EXIT_DONE, "")
    return record.read_text().splitlines()


def _changed_by(event: str, arguments: tuple[Any, ...]) -> Path | None:
    """The file that an event of Python's audit hooks changes, if any."""
    changing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    if event == "open" and (isinstance(arguments[0], int) or not arguments[2] & changing):
        return None
    positions = {"open": 0, "os.mkdir": 0, "os.remove": 0, "os.rename": 1, "os.link": 1}
    return Path(os.fsdecode(arguments[positions[event]])) if event in positions else None


def has_struck() -> bool:
    """Whether a fault has struck since this was last asked."""
    struck, _struck[0] = bool(_struck[0]), 0
    return struck


def _half_done(operation: Operation, path: Path) -> None:
    """Leave what an interrupted append or write may leave."""
    if operation in ("append", "write"):
        with path.open("ab") as file:
            file.write(b'{"step": 1, "spl')


def killed_at(point: int) -> Hook:
    """SIGKILL amid a change."""

    def hook(number: int, operation: Operation, path: Path) -> None:
        if number == point:
            _struck[0] = 1
            _half_done(operation, path)
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def stopped_at(point: int) -> Hook:
    """SIGSTOP before a change."""

    def hook(number: int, operation: Operation, path: Path) -> None:
        if number == point:
            _struck[0] = 1
            os.kill(os.getpid(), signal.SIGSTOP)

    return hook


def disk_full_at(point: int) -> Hook:
    """ENOSPC amid a change, and at each later one that needs space."""

    def hook(number: int, operation: Operation, path: Path) -> None:
        if number == point or (number > point and operation not in ("remove", "rename")):
            _struck[0] = 1
            _half_done(operation, path)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return hook


def failing_at(point: int) -> Hook:
    """EIO at one change."""

    def hook(number: int, operation: Operation, path: Path) -> None:
        if number == point:
            _struck[0] = 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return hook


def too_many_files_at(point: int) -> Hook:
    """EMFILE at a change and at everything that opens a file from then on, also to read it."""

    def hook(number: int, operation: Operation, path: Path) -> None:
        if number == point:
            _struck[0] = 1
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    return hook


FAULTS: dict[str, Callable[[int], Hook]] = {
    "SIGKILL": killed_at,
    "SIGSTOP": stopped_at,
    "ENOSPC": disk_full_at,
    "EIO": failing_at,
    "EMFILE": too_many_files_at,
}


@dataclass(frozen=True)
class Takeover:
    """How two processes fared, of which the second took over from the first."""

    first: Ended
    second: Ended
    has_struck: bool = False
    """Whether the second met its fault."""


def disturbed(run: Path, hook: Hook) -> Ended:
    """A process meets a fault; one that stops is continued when its lease is long over."""
    process = Process(run, hook, lease_seconds=SHORT)
    ended = process.wait()
    if ended is None:
        time.sleep(2 * SHORT)
        ended = process.go_on()
    return ended


def taken_over(run: Path, first_point: int, hook: Hook, is_command: bool = False) -> Takeover:
    """Stop one process past its lease, let another begin and meet a fault; then wake the first."""
    run.mkdir(exist_ok=True)
    first = Process(run, stopped_at(first_point), ELSEWHERE, SHORT, is_command)
    ended = first.wait()
    time.sleep(2 * SHORT)
    has_struck()
    second = Process(run, hook, is_command=is_command)
    second_ended = second.wait()
    ended = ended or first.go_on()
    return Takeover(ended, second_ended or second.go_on(), has_struck())


def stopped_past_its_lease(run: Path, first_delay: float, second_delay: float) -> Takeover:
    """Stop `epigrok run` at any moment, wait until its lease is over, wake it amid another's work.

    Unlike in `taken_over`, nothing is arranged: the clock alone decides where both of them are.
    """
    first = Process(run, undisturbed, ELSEWHERE, SHORT, is_command=True)
    time.sleep(first_delay)
    ended = first.stop()
    time.sleep(2 * SHORT)
    second = Process(run, undisturbed, is_command=True)
    time.sleep(second_delay)
    ended = ended or first.go_on()
    second_ended = second.wait()
    assert second_ended is not None
    return Takeover(ended, second_ended)
