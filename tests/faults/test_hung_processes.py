"""Real processes: one hangs beyond its lease, another takes over, then the first goes on.

The tests beside this one fork and stop at every change; here `epigrok run` is started as users
start it, with another host name, and stopped by SIGSTOP. For 30 tries of each kind:

    PYTHONPATH=tests python tests/faults/test_hung_processes.py 30
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sweep_results import ONE_THREAD, assert_same_run, epigrok_command
from tiny_run import EVALUATION, tiny

import epigrok
from epigrok.exit_codes import EXIT_DONE, EXIT_LOST
from epigrok.records.checking import check_run
from epigrok.records.directory import RunDirectory
from epigrok.records.holder import read_holder
from epigrok.runs import TrainOptions
from epigrok.runs.describing import write_identity

NUM_EACH = 3
LEASE = 0.5
NUM_STEPS = 200
PAUSED_AT = 60
EVALUATED = replace(EVALUATION, every=10, num_sequences=8, posteriors=("point",))
CONFIG = tiny(EVALUATED, num_steps=NUM_STEPS)
ELSEWHERE = """
import socket
socket.gethostname = lambda: "elsewhere"
"""
STOPS_ITSELF = f"""{ELSEWHERE}
import os, signal
from epigrok.runs import session
restore_newest = session.restore_newest
def stop_first(*arguments):
    os.kill(os.getpid(), signal.SIGSTOP)
    return restore_newest(*arguments)
session.restore_newest = stop_first
"""
Record = Callable[[str, object], None]


def start(run: Path, plugin: str | None = None) -> subprocess.Popen[str]:
    """`epigrok run`, on a machine of its own if a plugin pretends so."""
    flags: list[object] = []
    if plugin is not None:
        file = run.with_name("plugin.py")
        file.write_text(plugin)
        flags = ["--plugin", file]
    command = ["run", run, "--device", "cpu", f"--lease-seconds={LEASE}", *flags]
    return subprocess.Popen(
        epigrok_command(*command, "--checkpoint-seconds=0.1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )


def wait_until(condition: Callable[[], bool], *processes: subprocess.Popen[str]) -> None:
    """Until something holds, or one of the processes has ended."""
    while not condition() and all(process.poll() is None for process in processes):
        time.sleep(0.002)


def is_stopped(process: subprocess.Popen[str]) -> bool:
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def holds(run: Path, process: subprocess.Popen[str]) -> bool:
    holder = read_holder(run)
    return holder is not None and holder.pid == process.pid


def step_of(run: Path) -> int:
    steps = [int(path.name[5:]) for path in run.glob("checkpoints/step-*")]
    return max(steps, default=0)


def hang_and_be_taken_over(run: Path, is_forced: bool, chance: random.Random) -> bool:
    """Whether the first process lost its lease; it may have finished the run before."""
    first = start(run, STOPS_ITSELF if is_forced else ELSEWHERE)
    if is_forced:
        wait_until(lambda: is_stopped(first), first)
    else:
        wait_until(lambda: holds(run, first), first)
        time.sleep(chance.uniform(0.0, 2.0))
        first.send_signal(signal.SIGSTOP)
    time.sleep(2 * LEASE)
    # On a fast machine it may have finished before it was stopped.
    is_over = RunDirectory(run).is_done
    second = start(run)
    step = chance.randrange(PAUSED_AT, NUM_STEPS + 20)
    wait_until(lambda: holds(run, second) and step_of(run) >= step, second)
    first.send_signal(signal.SIGCONT)
    second_told, first_told = (words_of(process) for process in (second, first))
    expected = [f"{run} is finished; nothing to do"] if is_over else []
    assert (second.returncode, second_told) == (EXIT_DONE, expected)
    is_lost = first.returncode == EXIT_LOST
    assert is_lost or (first.returncode == EXIT_DONE and not is_forced), first_told
    sentence = f"epigrok: another process has taken over {run} while this one hung; "
    assert first_told == is_lost * [f"{sentence}it stops here and has changed nothing since"]
    return is_lost


def words_of(process: subprocess.Popen[str]) -> list[str]:
    """What a process says, at its end, apart from its progress."""
    text, _ = process.communicate()
    return [line for line in text.splitlines() if not line.startswith("step ")]


def takeovers(folder: Path, number: int, is_forced: bool, seed: int) -> dict[str, int]:
    """How many tries there were and how many of the first processes lost their leases."""
    whole, paused, run = (folder / name for name in ("whole", "paused", "run"))
    epigrok.train(CONFIG, whole, TrainOptions(device="cpu"))
    epigrok.train(CONFIG, paused, TrainOptions(device="cpu", stop_at_step=PAUSED_AT))
    lost = 0
    for attempt in range(number):
        chance = random.Random(f"{seed} {is_forced} {attempt}")
        if is_forced or chance.random() < 0.5:
            shutil.copytree(paused, run)
        else:
            run.mkdir()
            write_identity(run, CONFIG)
        lost += hang_and_be_taken_over(run, is_forced, chance)
        assert_same_run(RunDirectory(run), RunDirectory(whole))
        assert check_run(RunDirectory(run)) == []
        shutil.rmtree(run)
    return {"tried": number, "ended with the lease lost": lost}


@pytest.mark.faults
@pytest.mark.parametrize("is_forced", [True, False], ids=["forced", "unforced"])
def test_a_process_that_hung_leaves_its_successor_undisturbed(
    is_forced: bool, tmp_path: Path, record_property: Record
) -> None:
    """Forced: the first stops before it goes back to a checkpoint. Unforced: at any moment."""
    counts = takeovers(tmp_path, NUM_EACH, is_forced, seed=0)
    assert counts["ended with the lease lost"] > 0
    record_property(f"real takeovers, {'forced' if is_forced else 'unforced'}", counts)


if __name__ == "__main__":
    torch.set_num_threads(1)  # as in the processes that it starts: more change the last digits
    for kind in (True, False):
        with tempfile.TemporaryDirectory() as scratch:
            found = takeovers(Path(scratch), int(sys.argv[1]), kind, seed=1)
            print("forced" if kind else "unforced", found, flush=True)
