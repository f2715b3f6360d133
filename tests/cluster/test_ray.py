"""The smoke sweep on a real Ray on this machine: whole, stopped and killed."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sweep_results import assert_same_results, num_processes, run_sweep, start_sweep

from epigrok.records.directory import run_directories
from epigrok.records.lease import is_held

pytestmark = pytest.mark.ray

ON_RAY = ("--on", "ray", "--checkpoint-seconds", "0.2")


@pytest.fixture(scope="module", autouse=True)
def ray() -> None:
    pytest.importorskip("ray", reason="Ray tests did not run: ray is not installed")


def is_worked_on(directory: Path) -> bool:
    runs = run_directories(directory) if directory.exists() else []
    return any(is_held(run.path) and run.checkpoints.exists() for run in runs)


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_sweep_on_ray_ends_in_the_same_results(undisturbed: Path, tmp_path: Path) -> None:
    output = run_sweep(tmp_path / "out", *ON_RAY)
    assert "[8/8]" in output
    assert [num_processes(run) for run in run_directories(tmp_path / "out")] == [1] * 8
    assert_same_results(tmp_path / "out", undisturbed)


def test_a_stopped_and_killed_sweep_on_ray_goes_on(undisturbed: Path, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    for number in (signal.SIGINT, signal.SIGKILL):
        driver = start_sweep(directory, *ON_RAY)
        wait_until(lambda: is_worked_on(directory))
        driver.send_signal(number)
        output, _ = driver.communicate()
        assert driver.returncode == (130 if number == signal.SIGINT else -number)
        assert "Traceback" not in output
    # Workers do not outlive a killed driver.
    wait_until(lambda: not is_worked_on(directory))
    run_sweep(directory, *ON_RAY)
    assert_same_results(directory, undisturbed)


def test_more_than_ray_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a run asks for 7 GPU, but this Ray has 0"):
        run_sweep(tmp_path / "out", *ON_RAY, "--ray.gpus-per-run", "7")
