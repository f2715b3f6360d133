"""What is measured is the same training, and the measuring itself does not get stuck."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from epigrok.cli import main
from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.experiments.plain_training import plain_steps
from epigrok.experiments.speed import comparable, measure_packed, model_flops_per_step
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps


@pytest.mark.parametrize("name", ["classic", "icl-tiny"])
def test_plain_training_learns_the_same(name: str) -> None:
    config = replace(comparable(preset(name)), batch_size=32)
    family = build_family(config, sample_world(config.task, 0))
    ours = training_steps(initial_state(config), family, config)
    plain = plain_steps(initial_state(config), family, config, compiled=False)
    our_losses = torch.stack([record.loss for record in islice(ours, 6)])
    torch.testing.assert_close(our_losses, torch.stack(list(islice(plain, 6))))


def test_the_papers_step_has_as_many_operations_as_by_hand() -> None:
    """11.3 TFLOP: 18.9 M weights, 98,304 tokens, three passes, and attention over half a window."""
    per_token = 6 * (4 * 512**2 + 2 * 512 * 2048) + 6 * 96 * 512
    assert model_flops_per_step(preset("icl-paper")) == 6 * per_token * 1024 * 96
    assert model_flops_per_step(preset("icl-paper")) == pytest.approx(11.3e12, rel=0.01)


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the runs would not die")
def test_a_run_that_dies_ends_the_measurement() -> None:
    with pytest.raises(UserError, match="a run died"):
        measure_packed(comparable(preset("classic")), torch.device("cuda"), 2, {})


@pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "c++")) is None, reason="torch.compile needs a C++ compiler"
)
def test_the_command_prints_and_writes_what_it_measured(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    arguments = ["classic-ivon", "--steps", "1", "--device", "cpu", "--json", str(file)]
    # In a process of its own: run-time checks of shapes cannot be compiled.
    command = [sys.executable, "-m", "epigrok", "bench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results = json.loads(file.read_text())
    names = [way["name"] for way in results["training"]]
    assert names == ["plain PyTorch", "plain torch.compile", "epigrok", "epigrok, IVON"]
    assert all(way["steps_per_second"] > 0 for way in results["training"])
    assert all(name in done.stdout for name in names)
    assert results["speed_up_over_torch_compile"] > 0
    assert "epigrok against plain torch.compile" in done.stdout
    assert "on 2 splits" in done.stdout


def test_without_a_compiler_only_what_needs_one_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    arguments = ["classic", "--steps", "1", "--device", "cpu", "--json", str(file)]
    # What was compiled before needs no compiler, so the cache is empty.
    without = {"CXX": str(tmp_path / "none"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "epigrok", "bench", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **without}
    )
    results = json.loads(file.read_text())
    names = [way["name"] for way in results["training"]]
    assert names == ["plain PyTorch", "epigrok", "epigrok, IVON"]
    assert "speed_up_over_torch_compile" not in results
    assert "plain torch.compile is left out" in done.stdout


@pytest.mark.parametrize("arguments", [["--steps", "0"], ["--packed", "-1"]])
def test_what_cannot_be_measured_is_refused(arguments: list[str]) -> None:
    with pytest.raises((UserError, SystemExit)):
        main(["bench", "classic", *arguments])
