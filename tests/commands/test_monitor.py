"""`epigrok monitor` on runs that come with the package, trained before it could track tolerance."""

import re
from pathlib import Path

import pytest

from epigrok.cli import main
from epigrok.sweeps.description import Sweep, prepare


def test_it_prints_the_states_along_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "zoo:icl-tiny", "--device", "cpu"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"\| +step +\| +training accuracy +\| +id_val +\| +ood_val +\|", output)
    last = [line for line in output.splitlines() if line.startswith("|")][-1]
    assert re.search(r"2,000 \| +1\.00 \| +\w+ 0\.\d\d \| +\w+ 0\.\d\d", last)
    assert "id_val: generalis" in output


def test_what_is_no_run_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "nowhere"]) == 2
    assert "nowhere is not a run directory" in capsys.readouterr().err


def test_a_run_without_checkpoints_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = prepare(tmp_path, Sweep(name="one", methods=("classic",), seeds=(0,))).values()
    assert main(["monitor", str(run.path), "--device", "cpu"]) == 2
    assert "has no checkpoint yet" in capsys.readouterr().err
