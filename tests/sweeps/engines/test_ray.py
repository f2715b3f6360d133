"""Tasks for Ray, without a Ray; `tests/cluster` has one."""

import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.sweeps.engines import ray as engine
from epigrok.sweeps.engines.local import PoolOptions, RunEnd
from epigrok.sweeps.engines.ray import RayOptions, run_on_ray, work_on


@pytest.mark.parametrize("options", [{"gpus_per_run": -0.5}, {"cpus_per_run": 0.0}])
def test_a_run_needs_some_cpu_and_no_negative_gpu(options: dict[str, float]) -> None:
    with pytest.raises(UserError, match=r"cpus_per_run must be positive and .* not negative, got"):
        RayOptions(**options)


def test_a_task_says_how_its_run_ended(tmp_path: Path) -> None:
    (run,) = prepare(tmp_path, Sweep(name="s", methods=("classic",))).values()
    run.mark_done()
    assert work_on(PoolOptions(), "cpu", str(run.path)) == ("done", "")


def test_without_ray_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'epigrok\[ray\]'"):
        run_on_ray([RunDirectory(tmp_path)], PoolOptions(), RayOptions(), lambda end: None)


def test_without_runs_no_ray_is_started() -> None:
    assert run_on_ray([], PoolOptions(), RayOptions(), lambda end: None) == []


class CancelledError(Exception):
    """What Ray raises for a task that was cancelled."""


def ray_that_is_stopped(outcomes: dict[str, tuple[str, str] | None]) -> Any:
    """A Ray in which every task waits for the stop, then has its outcome or is cancelled."""
    cancelled: list[str] = []

    def wait(paths: list[str], timeout: float) -> tuple[list[str], list[str]]:
        if not cancelled:
            signal.raise_signal(signal.SIGTERM)
        return list(cancelled), []

    def get(path: str) -> tuple[str, str]:
        outcome = outcomes[Path(path).name]
        if outcome is None:
            raise CancelledError
        return outcome

    task = SimpleNamespace(remote=lambda options, device, path: path)
    return SimpleNamespace(
        is_initialized=lambda: True,
        cluster_resources=lambda: {"CPU": 8.0},
        remote=lambda **settings: lambda function: task,
        cancel=lambda path, force: cancelled.append(path),
        wait=wait,
        get=get,
        exceptions=SimpleNamespace(TaskCancelledError=CancelledError, RayError=CancelledError),
    )


def test_a_stop_tells_of_every_run_also_of_those_that_wait_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = Sweep(name="s", methods=("classic",), seeds=tuple(range(5)))
    runs = list(prepare(tmp_path, sweep).values())
    finished_elsewhere, held, *started = runs
    finished_elsewhere.mark_done()
    monkeypatch.setattr(engine, "is_held", lambda path: path in (runs[0].path, held.path))
    results = (None, ("done", ""), ("elsewhere", "another process is working on it"))
    outcomes = {run.path.name: result for run, result in zip(started, results, strict=True)}
    monkeypatch.setitem(sys.modules, "ray", ray_that_is_stopped(outcomes))
    told: list[RunEnd] = []
    ends = run_on_ray(runs, PoolOptions(), RayOptions(), told.append)
    assert ends == told
    assert [end.run for end in ends] == runs
    assert [end.state for end in ends] == ["done", "stopped", "stopped", "done", "stopped"]
