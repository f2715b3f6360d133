"""The scripts under `examples/` do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ARGUMENTS = {
    "along_a_run.py": (
        ["zoo:icl-tiny", "26", "2"],
        r"step 2000\n  id_train +accuracy 1\.00",
    ),
    "when_did_it_grok.py": (["run", "60"], r"laplace +fitted at (None|\d+), generalised at None"),
}


def test_every_example_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == ARGUMENTS.keys()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_runs_and_answers(name: str, tmp_path: Path) -> None:
    arguments, expected = ARGUMENTS[name]
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert re.search(expected, found.stdout)
