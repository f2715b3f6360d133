"""What tests of engines share: starting sweeps and comparing what they leave."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from epigrok.experiments.run_files import RunDirectory, run_directories

REPEATABLE = ("config.json", "metrics.jsonl", "training.jsonl", "calibration.jsonl")
REPEATABLE += ("world.safetensors",)
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def epigrok_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "epigrok", *map(str, arguments)]


def start_sweep(directory: Path, *arguments: object, sweep: object = "smoke") -> subprocess.Popen:
    """A driver in a session of its own, as in a terminal of its own."""
    return subprocess.Popen(
        epigrok_command("sweep", sweep, "--out", directory, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **ONE_THREAD},
        start_new_session=True,
    )


def run_sweep(directory: Path, *arguments: object, sweep: object = "smoke") -> str:
    driver = start_sweep(directory, *arguments, sweep=sweep)
    output, _ = driver.communicate()
    assert driver.returncode == 0, output
    return output


def num_processes(run: RunDirectory) -> int:
    return len(json.loads((run.path / "provenance.json").read_text())["processes"])


def assert_same_results(ours: Path, theirs: Path) -> None:
    """Every run is done, with the same bytes in its tables and the same weights."""
    first = {run.path.name: run for run in run_directories(ours)}
    second = {run.path.name: run for run in run_directories(theirs)}
    assert first.keys() == second.keys()
    for name, run in first.items():
        assert run.is_done
        for file in REPEATABLE:
            assert (run.path / file).read_bytes() == (second[name].path / file).read_bytes()
        weights = {path.relative_to(run.path) for path in run.path.rglob("model.safetensors")}
        assert weights
        for path in weights:
            mine, other = load_file(run.path / path), load_file(second[name].path / path)
            assert all(torch.equal(mine[key], other[key]) for key in mine)
