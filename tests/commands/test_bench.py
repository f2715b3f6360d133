"""`epigrok bench`: what it prints and writes."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sweep_results import epigrok_command

from epigrok.bench.speed import Speed
from epigrok.cli import main
from epigrok.commands import bench


def measured(*arguments: object, **environment: str) -> str:
    """In a process of its own: run-time checks of shapes cannot be compiled."""
    command = epigrok_command("bench", "classic", "--steps", 1, "--device", "cpu", *arguments)
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    ).stdout


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "c++")) is None, reason="torch.compile needs a C++ compiler"
)
def test_the_whole_measurement_with_a_compiler(tmp_path: Path) -> None:
    text = measured("--json", tmp_path / "bench.json")
    results = json.loads((tmp_path / "bench.json").read_text())
    names = [way["name"] for way in results["training"]]
    assert names == ["plain PyTorch", "plain torch.compile", "epigrok", "epigrok, IVON"]
    assert all(way["steps_per_second"] > 0 for way in results["training"])
    assert all(name in text for name in names)
    assert results["speed_up_over_torch_compile"] > 0
    assert "epigrok against plain torch.compile" in text


@pytest.mark.slow
def test_without_a_compiler_only_what_needs_one_is_left_out(tmp_path: Path) -> None:
    # What was compiled before needs no compiler, so the cache is empty.
    without = {"CXX": str(tmp_path / "none"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    text = measured("--json", tmp_path / "bench.json", **without)
    results = json.loads((tmp_path / "bench.json").read_text())
    names = [way["name"] for way in results["training"]]
    assert names == ["plain PyTorch", "epigrok", "epigrok, IVON"]
    assert "plain torch.compile is left out" in text


@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_was_measured_is_printed_and_written(
    is_compiled: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    speeds = {"plain PyTorch": 10.0, "plain torch.compile": 20.0, "epigrok": 50.0}
    speeds["epigrok, IVON"] = 40.0
    if not is_compiled:
        del speeds["plain torch.compile"]
    ways = [Speed(name, value, 1.0, 0.5, None, {}) for name, value in speeds.items()]
    monkeypatch.setattr(bench, "matmul_tflops", lambda device: 2.0)
    monkeypatch.setattr(bench, "measure_training", lambda *_: ways)
    monkeypatch.setattr(bench, "measure_evaluation", lambda *_: (0.5, 2))
    file = tmp_path / "deep" / "bench.json"
    assert main(["bench", "classic", "--device", "cpu", "--json", str(file)]) == 0
    text = capsys.readouterr().out
    assert "large matrix product: 2 TFLOP/s" in text
    assert all(name in text for name in speeds)
    assert "IVON's step against AdamW's: 1.250x" in text
    # Half a second after every 500 steps of 20 ms.
    assert "16 weight samples on 2 splits of 512" in text
    assert "0.5 s, 5.0% of 500 steps" in text
    assert ("epigrok against plain torch.compile: 2.50x" in text) == is_compiled
    assert ("plain torch.compile is left out" in text) != is_compiled
    results = json.loads(file.read_text())
    assert [way["name"] for way in results["training"]] == list(speeds)
    assert results.get("speed_up_over_torch_compile") == (2.5 if is_compiled else None)
    assert results["evaluation_share_of_training"] == pytest.approx(0.05)
