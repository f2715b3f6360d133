"""Tasks for Ray, without a Ray; `tests/cluster` has one."""

import sys
from pathlib import Path

import pytest

from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.sweeps.engines.local import PoolOptions
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
