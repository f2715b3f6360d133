"""Where numbers come from."""

import json
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

import epigrok
from epigrok.runs.provenance import provenance


def test_commit_versions_and_machine_are_noted() -> None:
    found = provenance(torch.device("cpu"))
    (process,) = found["processes"]
    assert found["epigrok"] == process["epigrok"] == epigrok.__version__
    assert process["versions"]["torch"] == version("torch")
    assert (process["device"], process["num_threads"]) == ("cpu", torch.get_num_threads())
    age = datetime.now(UTC) - datetime.fromisoformat(process["started"])
    assert 0 <= age.total_seconds() < 60
    git = ["git", "-C", str(Path(epigrok.__file__).parent), "rev-parse", "HEAD"]
    asked = subprocess.run(git, capture_output=True, text=True)
    assert found["commit"] == (asked.stdout.strip() or None)
    json.dumps(found, allow_nan=False)
