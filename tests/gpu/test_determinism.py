"""On a GPU the same run gives the same weights and tables, bit for bit: in another process, with
other evaluations in between, beside other runs on the same GPU, and after a kill."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SECONDS = 300
NUM_STEPS = {
    "classic": 400,
    "icl-tiny": 400,
    "icl-small": 2000,
    "icl-medium": 2000,
    "icl-medium-ivon": 2000,
    "icl-paper": 512,
}
NUM_EVALUATIONS = 4
TABLES = ("metrics", "final", "training", "calibration", "tolerance")
OF_EARLIER_LOOKS = (
    "state", "unreadable", "steadiness", "kept", "network_ratio", "network_ratio_log_se"
)  # fmt: skip
"""Columns of `tolerance` that depend on the looks before, and so on how often the run is seen."""


@pytest.mark.parametrize("name", NUM_STEPS)
def test_a_run_repeats_itself(name: str, tmp_path: Path) -> None:
    every = NUM_STEPS[name] // NUM_EVALUATIONS
    once, more_often, killed = (tmp_path / part for part in ("once", "more-often", "killed"))
    processes = [
        start(name, once, every),
        start(name, more_often, every // 2),
        start(name, killed, every),
    ]
    kill_amid(processes[-1], killed, range(every + 1, NUM_STEPS[name]))
    processes[-1] = start(name, killed, every)
    assert [process.wait(SECONDS) for process in processes] == [0, 0, 0]

    expected = weights(once)
    assert expected.keys() == weights(more_often).keys() == weights(killed).keys()
    assert len(expected) > 3
    for step, content in expected.items():
        assert content == weights(more_often)[step] == weights(killed)[step], step
    for table in TABLES:
        rows = read(once, table)
        assert rows == read(killed, table)
        at_the_same_steps = [row for row in read(more_often, table) if row["step"] % every == 0]
        assert [of_this_look(row) for row in rows] == [of_this_look(r) for r in at_the_same_steps]


def of_this_look(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in OF_EARLIER_LOOKS}


def start(name: str, directory: Path, every: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "epigrok", "train", name, "--device", "cuda"]
    settings = {
        "num-steps": NUM_STEPS[name],
        "schedule.warmup-steps": 20,
        "evaluation.every": every,
        "evaluation.num-sequences": 512,
        "evaluation.num-sampled-sequences": 128,
        "evaluation.num-samples": 4,
        "evaluation.num-final-samples": 4,
        "checkpoint-seconds": 0.5,
        "out": directory,
    }
    for flag, value in settings.items():
        command += [f"--{flag}", str(value)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def kill_amid(process: subprocess.Popen[bytes], directory: Path, steps: range) -> None:
    """Kill the run between two evaluations, somewhere before its end."""
    until = time.monotonic() + SECONDS
    while step_of(directory) not in steps:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until, "no step was taken in time"
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (directory / "DONE").exists()


def step_of(directory: Path) -> int:
    file = directory / "status.json"
    return json.loads(file.read_text())["step"] if file.exists() else 0


def weights(directory: Path) -> dict[str, bytes]:
    """The weights kept at each step of the ladder."""
    files = (directory / "checkpoints").glob("step-*/model.safetensors")
    return {file.parent.name: file.read_bytes() for file in files}


def read(directory: Path, table: str) -> list[dict[str, object]]:
    lines = (directory / f"{table}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
