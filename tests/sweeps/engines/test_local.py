"""Sweeps on one machine: killed, doubled, stopped and failing, they end in the same results."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from sweep_results import assert_same_results, num_processes, run_sweep, start_sweep

import epigrok
from epigrok.records.checking import check_run
from epigrok.records.directory import RunDirectory, run_directories
from epigrok.records.holder import read_holder
from epigrok.records.lease import hold_lease
from epigrok.records.status import read_statuses
from epigrok.sweeps.description import Condition, Sweep, prepare, sweep_to_json
from epigrok.sweeps.engines.local import PoolOptions, RunEnd, run_pool
from epigrok.sweeps.engines.slots import parse_slots

TWO = ("--slots", "cpu*2")
POINT = {"evaluation.posteriors": ["point"], "evaluation.num_sequences": 48}
TINY = {**POINT, "num_steps": 20, "schedule.warmup_steps": 0}
SMALL = Sweep(
    name="small",
    methods=("icl-tiny-ivon", "classic"),
    overrides={
        "num_steps": 40,
        "batch_size": 32,
        "schedule.warmup_steps": 5,
        "evaluation.every": 10,
        "evaluation.num_sequences": 48,
        "evaluation.num_sampled_sequences": 48,
        "evaluation.num_samples": 2,
        "evaluation.num_final_samples": 2,
        "evaluation.posteriors": ["point", "weight-noise:0.1"],
        "num_ladder_checkpoints": 4,
    },
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the runs of the small sweep end in, without any engine."""
    directory = tmp_path_factory.mktemp("sweep") / "undisturbed"
    for run in prepare(directory, SMALL).values():
        epigrok.train(run.config(), run.path)
    return directory


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The description of the small sweep, in a file."""
    return described(tmp_path_factory.mktemp("description"), SMALL)


def described(directory: Path, sweep: Sweep) -> Path:
    file = directory / "sweep.json"
    file.write_text(json.dumps(sweep_to_json(sweep)))
    return file


def long_sweep(directory: Path) -> Path:
    """A description of one run of minutes."""
    overrides = {**POINT, "num_steps": 20000, "batch_size": 32}
    return described(directory, Sweep(name="long", methods=("icl-tiny",), overrides=overrides))


def holders(directory: Path) -> Iterator[int]:
    """Process numbers of workers that hold a run."""
    for run in run_directories(directory) if directory.exists() else []:
        holder = read_holder(run.path)
        if holder is not None and holder.is_alive():
            yield holder.pid


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_two_drivers_at_once_work_on_every_run_once_and_a_third_has_nothing_to_do(
    undisturbed: Path, small: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "shared"
    drivers = [start_sweep(directory, *TWO, sweep=small) for _ in range(2)]
    for driver in drivers:
        output, _ = driver.communicate()
        assert driver.returncode == 0, output
        assert "[2/2]" in output
    assert "2 runs, 2 done" in run_sweep(directory, *TWO, sweep=small)
    assert [num_processes(run) for run in run_directories(directory)] == [1, 1]
    assert not list(directory.rglob("lease.json*"))
    assert_same_results(directory, undisturbed)


def test_killing_driver_and_workers_at_random_moments_changes_nothing(
    undisturbed: Path, small: Path, tmp_path: Path
) -> None:
    moments = random.Random(1)
    directory = tmp_path / "killed"
    arguments = (*TWO, "--checkpoint-seconds", "0")
    for number in range(2):
        driver = start_sweep(directory, *arguments, sweep=small)
        # On a fast machine the sweep may be over by now, but not in the first round.
        wait_until(lambda driver=driver: list(holders(directory)) or driver.poll() is not None)
        if number % 2:
            for worker in list(holders(directory))[:1]:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
        time.sleep(moments.uniform(0.0, 1.0))
        driver.kill()
        driver.communicate()
    run_sweep(directory, *arguments, sweep=small)
    assert_same_results(directory, undisturbed)
    assert sum(num_processes(run) for run in run_directories(directory)) > 2


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
    wait_until(lambda: list(directory.glob("*/checkpoints/step-0")))
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate()
    assert driver.returncode == 130
    assert "1 not finished; to resume, run the same command again" in output
    assert "Traceback" not in output
    (status,) = read_statuses(directory)
    assert status.state == "stopped"
    assert (status.path / "checkpoints" / f"step-{status.step}" / "resume.pt").exists()


def test_workers_save_and_leave_when_their_driver_is_killed(tmp_path: Path) -> None:
    file, directory = long_sweep(tmp_path), tmp_path / "out"
    driver = start_sweep(directory, *TWO, sweep=file)
    wait_until(lambda: list(directory.glob("*/checkpoints/step-0")))
    driver.kill()
    driver.communicate()
    wait_until(lambda: not list(holders(directory)))
    assert [status.state for status in read_statuses(directory)] == ["stopped"]


def test_a_killed_worker_is_replaced_a_bounded_number_of_times(tmp_path: Path) -> None:
    file, directory = long_sweep(tmp_path), tmp_path / "out"
    driver = start_sweep(directory, "--slots", "cpu", "--retries", "1", sweep=file)
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
    assert output.count("killed by SIGKILL, 2 times") == 2  # told at once and at the end
    assert len(seen) == 2


def ends_of(runs: list[RunDirectory], **options: float) -> list[tuple[str, str]]:
    """What a pool without workers to start says of runs."""
    told: list[RunEnd] = []
    ends = run_pool(runs, parse_slots("cpu", {}), PoolOptions(**options), told.append)
    assert told == ends
    return [(end.state, end.reason) for end in ends]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (run,) = prepare(tmp_path, Sweep(name="s", methods=("classic",), overrides=TINY)).values()
    return run


def test_what_others_have_done_is_not_done_again(run: RunDirectory) -> None:
    run.mark_done()
    assert ends_of([run]) == [("done", "")]
    assert not run.log.exists()


def test_a_run_that_somebody_holds_for_too_long_is_left_to_them(run: RunDirectory) -> None:
    with hold_lease(run.path):
        assert ends_of([run], patience_seconds=0.0) == [
            ("elsewhere", "another process is working on it")
        ]
    assert not run.log.exists()


def test_a_run_that_somebody_else_failed_at_meanwhile_is_not_tried_again(run: RunDirectory) -> None:
    run.write_status(state="failed", reason="no memory", updated=time.time() + 60)
    assert ends_of([run]) == [("failed", "no memory")]


def test_a_worker_that_cannot_be_started_is_a_failure(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    ((state, reason),) = ends_of([run])
    assert state == "failed"
    assert reason.startswith("cannot start its worker: ")


class FakeProcess(subprocess.Popen[bytes]):
    """A worker that does nothing but end."""

    def __init__(self, poll: Callable[[], int | None]) -> None:
        self._poll = poll

    def poll(self) -> int | None:
        return self._poll()


class Clock:
    """Time that passes only while somebody works or sleeps."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_no_run_is_started_that_would_not_finish_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()

    def work_for_40_seconds(runs: Sequence[RunDirectory], *_: object) -> "FakeProcess":
        clock.now += 40.0
        runs[0].mark_done()
        return FakeProcess(lambda: 0)

    runs = prepare(tmp_path, Sweep(name="s", methods=("classic",), seeds=(0, 1, 2), overrides=TINY))
    monkeypatch.setattr("epigrok.sweeps.engines.local.time", clock)
    monkeypatch.setattr("epigrok.sweeps.engines.local.start_worker", work_for_40_seconds)
    late = ("stopped", "it would not finish in time")
    assert ends_of(list(runs.values()), time_limit=100.0) == [("done", ""), ("done", ""), late]


def test_runs_start_one_after_the_other_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, starts = Clock(), []

    def work_for_100_seconds(runs: Sequence[RunDirectory], *_: object) -> "FakeProcess":
        starts.append(clock.now)
        end = clock.now + 100.0

        def poll() -> int | None:
            if clock.now < end:
                return None
            runs[0].mark_done()
            return 0

        return FakeProcess(poll)

    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1, 2, 3), overrides=TINY)
    runs = list(prepare(tmp_path, sweep).values())
    monkeypatch.setattr("epigrok.sweeps.engines.local.time", clock)
    monkeypatch.setattr("epigrok.sweeps.engines.local.start_worker", work_for_100_seconds)
    run_pool(runs, parse_slots("cpu*2", {}), PoolOptions(stagger=12.0), lambda _: None)
    # The second slot starts later, and stays behind.
    assert starts == pytest.approx([0.0, 12.0, 100.0, 112.0], abs=0.2)


def test_a_pool_stops_when_its_time_is_over(run: RunDirectory) -> None:
    assert ends_of([run], time_limit=1e-9) == [("stopped", "")]
    assert not run.log.exists()


def test_runs_that_keep_only_tables_are_done_and_have_the_numbers_of_any_other(
    small: Path, undisturbed: Path, tmp_path: Path
) -> None:
    run_sweep(tmp_path / "out", *TWO, "--keep", "tables", sweep=small)
    assert "2 runs, 2 done" in run_sweep(tmp_path / "out", *TWO, sweep=small)
    for ours, theirs in zip(run_directories(tmp_path / "out"), run_directories(undisturbed)):
        assert ours.rows("metrics") == theirs.rows("metrics")
        assert check_run(ours) == []
        assert not list(ours.checkpoints.iterdir())


def test_one_worker_does_several_runs_with_the_numbers_of_any_other(
    small: Path, undisturbed: Path, tmp_path: Path
) -> None:
    run_sweep(tmp_path, "--slots", "cpu", "--runs-per-worker", "4", sweep=small)
    assert_same_results(tmp_path, undisturbed)
    runs = run_directories(tmp_path)
    # One process did them all, and each has a log of its own.
    assert len({run.status()["pid"] for run in runs}) == 1
    assert all("step 40/40" in run.log.read_text() for run in runs)


def test_a_failure_leaves_the_other_runs_of_its_worker_to_the_next(tmp_path: Path) -> None:
    broken = Sweep(
        name="broken",
        methods=("classic",),
        seeds=(0, 1, 2),
        overrides=TINY,
        conditions=(Condition(where={"run_seed": 1}, set={"optim.lr": 1e30}),),
    )
    out = tmp_path / "out"
    driver = start_sweep(
        out, "--slots", "cpu", "--runs-per-worker", "3", sweep=described(tmp_path, broken)
    )
    output, _ = driver.communicate()
    assert driver.returncode == 1, output
    assert "1 failed" in output
    states = {run.config().run_seed: run.status()["state"] for run in run_directories(out)}
    assert states == {0: "done", 1: "failed", 2: "done"}
