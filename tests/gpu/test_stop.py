"""A run on a GPU stops as politely as one on a CPU, although its compilers take signals over."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from epigrok.exit_codes import EXIT_STOPPED

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SECONDS = 120


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sent_twice_at_once_stops_a_run_that_saves(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "epigrok", "train", "icl-tiny", "--num-steps", "1000000"]
    process = subprocess.Popen([*command, "--device", "cuda", "--out", str(tmp_path)])
    until = time.monotonic() + SECONDS
    while _status(tmp_path).get("step", 0) < 50:
        assert process.poll() is None
        assert time.monotonic() < until, "no step was taken in time"
        time.sleep(0.5)
    for _ in range(2):
        os.kill(process.pid, number)
    assert process.wait(SECONDS) == EXIT_STOPPED
    assert _status(tmp_path)["state"] == "stopped"


def _status(directory: Path) -> dict[str, object]:
    file = directory / "status.json"
    return json.loads(file.read_text()) if file.exists() else {}
