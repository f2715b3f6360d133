"""Runs that are disturbed at a chosen change of a file: killed, failed, or stopped and taken over.

Every process is a fork of the test's own, so that a run takes a fraction of a second. `announce`
tells of every change before it happens; the changes of a run are numbered in that order.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

# Before any fork: loading these takes longer than a run.
import duckdb  # noqa: F401
import torch._dynamo  # noqa: F401
from tiny_run import EVALUATION, tiny

import epigrok
from epigrok import workspace
from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HELD, EXIT_LOST
from epigrok.records import holder, lease
from epigrok.records.holder import LEASE
from epigrok.records.lease import LeaseHeldError, LeaseLostError
from epigrok.runs import TrainOptions
from epigrok.runs.provenance import _code

CONFIG = tiny(
    replace(EVALUATION, every=2, num_sequences=4, posteriors=("point",)),
    num_steps=4,
    batch_size=4,
    num_ladder_checkpoints=2,
)
OPTIONS = TrainOptions(checkpoint_seconds=0.0, device="cpu")
"""A checkpoint after every step: as many different situations as a run of seconds can have."""

LEASE_SECONDS = 0.4
Hook = Callable[[int], None]
_code()


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    exit_code: int | None
    """None if a signal ended it."""
    output: str


class Process:
    """A fork that works on a run, with a hook before every change."""

    def __init__(
        self, run: Path, hook: Hook, machine: str | None = None, lease_seconds: float = 60.0
    ) -> None:
        self._log = run.with_name(f"{run.name}-{random.getrandbits(64):x}.log")
        self.pid = os.fork()
        if self.pid == 0:
            options = replace(OPTIONS, lease_seconds=lease_seconds)
            os._exit(_work(run, hook, machine, self._log, options))

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


def _work(run: Path, hook: Hook, machine: str | None, log: Path, options: TrainOptions) -> int:
    """In the fork: train, and tell by the exit code how that went."""
    with log.open("w") as file:
        sys.stdout = sys.stderr = file
        # Nobody cuts the power here, and waiting for disks would take most of the time.
        os.fsync = lambda descriptor: None
        if machine is not None:
            holder.this_machine = lease.this_machine = lambda: machine  # type: ignore[assignment]
        numbers = iter(range(10**9))
        workspace.announce = lambda operation, path: hook(next(numbers))
        try:
            epigrok.train(CONFIG, run, options)
        except LeaseLostError as error:
            file.write(f"{error}\n")
            return EXIT_LOST
        except LeaseHeldError:
            return EXIT_HELD
        except BaseException:
            file.write(traceback.format_exc())
            return EXIT_FAILED
        return EXIT_DONE


def undisturbed(_: int) -> None:
    """No fault at all."""


def finish(run: Path) -> Ended:
    """Train to the end without faults."""
    ended = Process(run, undisturbed).wait()
    assert ended is not None
    return ended


def num_changes(run: Path) -> int:
    """How many changes an undisturbed run makes; it is left in `run`."""
    counter = run.with_name("changes")

    def count(number: int) -> None:
        counter.write_text(str(number + 1))

    ended = Process(run, count).wait()
    assert ended == Ended(EXIT_DONE, ""), ended
    return int(counter.read_text())


def killed_at(point: int) -> Hook:
    """SIGKILL before a change."""

    def hook(number: int) -> None:
        if number == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def failing_at(point: int, error: int, for_good: bool = False) -> Hook:
    """A change that fails, and all after it if `for_good`."""

    def hook(number: int) -> None:
        if number == point or (for_good and number > point):
            raise OSError(error, os.strerror(error))

    return hook


def stopped_at(point: int) -> Hook:
    """SIGSTOP before a change."""

    def hook(number: int) -> None:
        if number == point:
            os.kill(os.getpid(), signal.SIGSTOP)

    return hook


def stopped_past_its_lease(run: Path, first_delay: float, second_delay: float) -> "Takeover":
    """Stop a process at any moment, wait until its lease is over, wake it amid another's work.

    Unlike `taken_over`, nothing is arranged: the clock alone decides where both of them are.
    """
    run.mkdir(exist_ok=True)
    first = Process(run, undisturbed, lease_seconds=LEASE_SECONDS)
    time.sleep(first_delay)
    ended = first.stop()
    time.sleep(1.5 * LEASE_SECONDS)
    second = Process(run, undisturbed, machine="elsewhere")
    time.sleep(second_delay)
    ended = ended or first.go_on()
    second_ended = second.wait()
    assert second_ended is not None
    return Takeover(ended, second_ended)


@dataclass(frozen=True)
class Takeover:
    """How two processes fared, of which the second took over from the first."""

    first: Ended
    second: Ended


def taken_over(run: Path, first_point: int, second_point: int) -> Takeover:
    """Stop one process, let another begin, and let the first go on amid the second's work."""
    run.mkdir(exist_ok=True)
    first = Process(run, stopped_at(first_point))
    ended = first.wait()
    if (run / LEASE).exists():
        # As old as it would be had the first process been silent for long.
        os.utime(run / LEASE, (0, 0))
    second = Process(run, stopped_at(second_point), machine="elsewhere")
    second_ended = second.wait()
    ended = ended or first.go_on()
    return Takeover(ended, second_ended or second.go_on())
