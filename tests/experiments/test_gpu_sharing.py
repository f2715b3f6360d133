"""Sharing a GPU, with a stand-in for the driver's tool."""

import os
from pathlib import Path

import pytest

from epigrok.experiments.engines.gpu_sharing import shared_gpu
from epigrok.experiments.engines.local import _sharing
from epigrok.experiments.engines.slots import parse_slots


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
def test_only_slots_on_one_gpu_share_it(told: Path, text: str, is_shared: bool) -> None:
    with _sharing(parse_slots(text, {})) as slots:
        has_variables = ["CUDA_MPS_PIPE_DIRECTORY" in slot.environment for slot in slots]
    assert has_variables == [is_shared] * len(slots)
    assert told.exists() == is_shared
