"""Sweeps on one machine: killed, doubled, stopped and failing, they end in the same results."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sweep_results import assert_same_results, num_processes, run_sweep, start_sweep

from epigrok.errors import UserError
from epigrok.experiments.engines.slots import default_slots, parse_slots
from epigrok.experiments.lease import read_holder
from epigrok.experiments.run_files import run_directories
from epigrok.experiments.status import read_statuses
from epigrok.experiments.sweep import Sweep, prepare, sweep_to_json

TWO = ("--slots", "cpu*2")
TINY = {
    "num_steps": 20,
    "schedule.warmup_steps": 0,
    "evaluation.posteriors": ["point"],
    "evaluation.num_rows": 64,
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sweep") / "undisturbed"
    output = run_sweep(directory, *TWO)
    assert "[8/8]" in output
    return directory


def long_sweep(directory: Path, **overrides: object) -> Path:
    """A description of two runs of a minute."""
    file = directory / "long.json"
    small = {"num_steps": 20000, "batch_size": 32, "evaluation.num_rows": 48}
    content = {"methods": ["icl-tiny"], "seeds": [0, 1], "overrides": small | overrides}
    file.write_text(json.dumps(content))
    return file


def holders(directory: Path) -> Iterator[int]:
    """Process numbers of workers that hold a run."""
    for run in run_directories(directory) if directory.exists() else []:
        holder = read_holder(run.path)
        if holder is not None and holder.is_alive():
            yield holder.pid


def wait_until(condition: object, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_every_run_is_done_once_and_a_second_call_does_nothing(undisturbed: Path) -> None:
    runs = run_directories(undisturbed)
    assert [num_processes(run) for run in runs] == [1] * 8
    assert not list(undisturbed.rglob("lease.json*"))
    assert "8 runs, 8 done" in run_sweep(undisturbed, *TWO)
    assert [num_processes(run) for run in runs] == [1] * 8


def test_killing_driver_and_workers_at_random_moments_changes_nothing(
    undisturbed: Path, tmp_path: Path
) -> None:
    moments = random.Random(1)
    directory = tmp_path / "killed"
    arguments = (*TWO, "--checkpoint-seconds", "0.1")
    for number in range(4):
        driver = start_sweep(directory, *arguments)
        # On a fast machine the sweep may be over by now, but not in the first round.
        wait_until(lambda driver=driver: list(holders(directory)) or driver.poll() is not None)
        if number % 2:
            time.sleep(moments.uniform(0.0, 1.0))
            for worker in moments.sample(found := list(holders(directory)), len(found))[:1]:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
        time.sleep(moments.uniform(0.5, 2.0))
        driver.kill()
        driver.communicate()
    run_sweep(directory, *arguments)
    assert_same_results(directory, undisturbed)
    assert sum(num_processes(run) for run in run_directories(directory)) > 8


def test_two_drivers_at_once_never_run_one_run_twice(undisturbed: Path, tmp_path: Path) -> None:
    drivers = [start_sweep(tmp_path / "shared", "--slots", "cpu*2") for _ in range(2)]
    for driver in drivers:
        output, _ = driver.communicate()
        assert driver.returncode == 0, output
        assert "[8/8]" in output
    assert [num_processes(run) for run in run_directories(tmp_path / "shared")] == [1] * 8
    assert_same_results(tmp_path / "shared", undisturbed)


def test_a_run_that_fails_stops_no_other_and_is_listed_with_reason_and_log(tmp_path: Path) -> None:
    file = tmp_path / "sweep.json"
    overrides = {**TINY, "optim.clip_norm": 1e38}
    axes = {"optim.lr": [1e38, 1e-3]}
    file.write_text(json.dumps({"methods": ["classic"], "axes": axes, "overrides": overrides}))
    driver = start_sweep(tmp_path / "out", "--slots", "cpu", sweep=file)
    output, _ = driver.communicate()
    assert driver.returncode == 1
    states = {s.config["optim.lr"]: s for s in read_statuses(tmp_path / "out")}
    assert (states[1e38].state, states[1e-3].state) == ("failed", "done")
    assert "1 failed:" in output
    assert "not finite at step" in output.partition("1 failed:")[2]
    assert f"log: {states[1e38].path / 'log.txt'}" in output
    assert "Traceback" not in output


def test_ctrl_c_lets_workers_save_and_a_second_call_goes_on(tmp_path: Path) -> None:
    file, directory = long_sweep(tmp_path), tmp_path / "out"
    driver = start_sweep(directory, *TWO, sweep=file)
    wait_until(lambda: len(list(directory.glob("*/checkpoints/step-0"))) == 2)
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate()
    assert driver.returncode == 130
    assert "2 not finished; to go on, run the same command again" in output
    assert "Traceback" not in output
    for status in read_statuses(directory):
        assert status.state == "stopped"
        assert (status.path / "checkpoints" / f"step-{status.step}" / "resume.pt").exists()


def test_workers_save_and_leave_when_their_driver_is_killed(tmp_path: Path) -> None:
    file, directory = long_sweep(tmp_path), tmp_path / "out"
    driver = start_sweep(directory, *TWO, sweep=file)
    wait_until(lambda: len(list(directory.glob("*/checkpoints/step-0"))) == 2)
    driver.kill()
    driver.communicate()
    wait_until(lambda: not list(holders(directory)))
    assert {status.state for status in read_statuses(directory)} == {"stopped"}


def test_a_killed_worker_is_replaced_a_bounded_number_of_times(tmp_path: Path) -> None:
    file, directory = long_sweep(tmp_path), tmp_path / "out"
    driver = start_sweep(directory, "--slots", "cpu*2", "--retries", "1", sweep=file)
    seen: set[int] = set()

    def kill_one() -> bool:
        for worker in set(holders(directory)) - seen:
            seen.add(worker)
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        return driver.poll() is not None

    wait_until(kill_one)
    output, _ = driver.communicate()
    assert driver.returncode == 1
    assert output.count("killed by SIGKILL, 2 times") == 4  # two runs, told at once and at the end
    assert len(seen) == 4


def test_a_directory_that_holds_another_run_is_a_failure(tmp_path: Path) -> None:
    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1), overrides=TINY)
    first, second = prepare(tmp_path / "out", sweep).values()
    (first.path / "config.json").write_bytes((second.path / "config.json").read_bytes())
    (tmp_path / "sweep.json").write_text(json.dumps(sweep_to_json(sweep)))
    driver = start_sweep(tmp_path / "out", *TWO, sweep=tmp_path / "sweep.json")
    output, _ = driver.communicate()
    assert driver.returncode == 1
    assert f"it now describes run {second.path.name}" in output
    assert "[1/2]" in output


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("cpu", [("cpu", "")]),
        ("cpu*2", [("cpu", "")] * 2),
        ("cuda:1*2, cpu", [("cuda", "1"), ("cuda", "1"), ("cpu", "")]),
    ],
)
def test_slots_are_places_for_runs(text: str, devices: list[tuple[str, str]]) -> None:
    slots = parse_slots(text, {})
    assert [(s.device, s.environment["CUDA_VISIBLE_DEVICES"]) for s in slots] == devices
    assert all(int(slot.environment["OMP_NUM_THREADS"]) >= 1 for slot in slots)


def test_a_run_on_the_cpu_has_one_thread_unless_told_otherwise() -> None:
    threads = [slot.environment["OMP_NUM_THREADS"] for slot in parse_slots("cpu:4*2,cpu", {})]
    assert threads == ["4", "4", "1"]


def test_slots_respect_what_the_user_has_set() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "4,GPU-abc", "OMP_NUM_THREADS": "3"}
    (slot,) = parse_slots("cuda:1", environment)
    assert slot.environment == {"CUDA_VISIBLE_DEVICES": "GPU-abc", "OMP_NUM_THREADS": "3"}
    assert default_slots(environment) == "cuda:0,cuda:1"
    assert default_slots({"CUDA_VISIBLE_DEVICES": ""}).startswith("cpu*")
    with pytest.raises(UserError, match="no cuda:2: CUDA_VISIBLE_DEVICES leaves 2 GPUs"):
        parse_slots("cuda:2", environment)


@pytest.mark.parametrize(
    "text", ["", "gpu", "cpu*0", "cpu*-1", "cuda", "cuda:x", "cpu,,cpu", "cpu*", "cpu:0"]
)
def test_a_wrong_slot_is_explained(text: str) -> None:
    with pytest.raises(UserError, match="is no slot: write cpu"):
        parse_slots(text, {})
