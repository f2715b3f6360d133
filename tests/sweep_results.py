"""What tests of runs and of engines share: starting sweeps, and comparing what they leave."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import torch
from safetensors.torch import load_file

from epigrok.evaluation.schema import SERIES_TABLES, TABLES, TRAINING_TABLES
from epigrok.records.directory import PARQUET, RunDirectory, run_directories
from epigrok.tables.sql_text import quoted_path

# How long things took is the one thing that differs every time.
REPEATABLE_TABLES = [*(set(TRAINING_TABLES) - {"timings"}), *SERIES_TABLES.values()]
REPEATABLE = ["run.json", "config.json", "world.safetensors"]
REPEATABLE += [TABLES[name].file for name in REPEATABLE_TABLES]
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
    """How many processes have worked on a run."""
    return len(run.provenance()["processes"])


def positions(run: RunDirectory) -> list[tuple[object, ...]]:
    """Every row of a finished run's metrics by context length: step and evaluation come first."""
    return duckdb.sql(f"from {quoted_path(run.path / PARQUET)} order by all").fetchall()


def assert_same_run(ours: RunDirectory, theirs: RunDirectory) -> None:
    """Both are done, with the same bytes in their tables, the same positions and weights."""
    assert ours.is_done
    assert theirs.is_done
    for file in REPEATABLE:
        first, second = ours.path / file, theirs.path / file
        assert first.exists() == second.exists(), file
        assert not first.exists() or first.read_bytes() == second.read_bytes(), file
    assert positions(ours) == positions(theirs)
    kept = [_tensor_files(run) for run in (ours, theirs)]
    assert kept[0] == kept[1] != set()
    for file in kept[0]:
        mine, other = (load_file(run.checkpoints / file) for run in (ours, theirs))
        assert mine.keys() == other.keys()
        assert all(torch.equal(mine[name], other[name]) for name in mine), file


def _tensor_files(run: RunDirectory) -> set[Path]:
    """Of the kept steps: weights, and deviations where the optimiser carries a posterior."""
    found = run.checkpoints.glob("step-*/*.safetensors")
    return {file.relative_to(run.checkpoints) for file in found}


def assert_same_results(ours: Path, theirs: Path) -> None:
    """The same runs lie in both directories, with the same results."""
    first = {run.path.name: run for run in run_directories(ours)}
    second = {run.path.name: run for run in run_directories(theirs)}
    assert first.keys() == second.keys()
    for name, run in first.items():
        assert_same_run(run, second[name])
