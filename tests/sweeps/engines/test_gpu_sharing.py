"""Sharing a GPU, with a stand-in for the driver's tool."""

import os
import sys
from pathlib import Path

import pytest

from epigrok.records.directory import RunDirectory
from epigrok.sweeps.engines.gpu_sharing import shared_gpu
from epigrok.sweeps.engines.local import PoolOptions, run_pool
from epigrok.sweeps.engines.slots import parse_slots


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the tool was told; it starts, and then does as it is told."""
    log = tmp_path / "told"
    tool = tmp_path / "bin" / "nvidia-cuda-mps-control"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" "$(cat)" "$CUDA_MPS_PIPE_DIRECTORY" >> {log}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    return log


def test_the_service_is_started_and_stopped(told: Path) -> None:
    with shared_gpu() as variables:
        pipe = variables["CUDA_MPS_PIPE_DIRECTORY"]
        assert Path(pipe).is_dir()
        assert told.read_text().split() == ["-d", pipe]
    assert told.read_text().split() == ["-d", pipe, "quit", pipe]


def test_a_service_of_somebody_else_is_left_alone(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/somewhere")
    with shared_gpu() as variables:
        assert variables == {}
    assert not told.exists()


@pytest.mark.parametrize(
    ("text", "is_shared"), [("cuda:0*2", True), ("cuda:0,cuda:1", False), ("cpu*2,cuda:0", False)]
)
def test_only_runs_on_one_gpu_share_it(
    told: Path, text: str, is_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "bin" / "worker"
    worker.write_text("#!/bin/sh\necho pipe: $CUDA_MPS_PIPE_DIRECTORY\nexit 1\n")
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(worker))
    slots = parse_slots(text, {})
    runs = [RunDirectory(tmp_path / f"run-{number}") for number in range(len(slots))]
    for run in runs:
        run.path.mkdir()
    ends = run_pool(runs, slots, PoolOptions(), lambda end: None)
    pipes = {end.reason for end in ends}
    assert len(pipes) == 1
    assert pipes.pop().startswith("pipe: /") == told.exists() == is_shared
