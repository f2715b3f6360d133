"""The files of a checkpoint: which there are, and what proves them damaged."""

import json
from pathlib import Path

import pytest
from damaged_files import DEEP

from epigrok.checkpoint_files import (
    DIGESTS,
    checkpoint_path,
    checkpoint_steps,
    problem_with_checkpoint,
    write_digests,
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = checkpoint_path(tmp_path, 7)
    path.mkdir()
    for name in ("model.safetensors", "resume.pt", "tables.json"):
        (path / name).write_text(json.dumps({"of": name}))
    write_digests(path / DIGESTS)
    return path


def test_steps_are_those_with_weights(checkpoint: Path) -> None:
    root = checkpoint.parent
    for name in ("step-x", "step-9", "damaged-step-3-0"):
        (root / name).mkdir()
    checkpoint_path(root, 30).mkdir()
    (checkpoint_path(root, 30) / "model.safetensors").touch()
    assert checkpoint_steps(root) == [7, 30]


def test_an_intact_checkpoint_has_no_problem(checkpoint: Path) -> None:
    assert problem_with_checkpoint(checkpoint) is None
    # The ladder keeps weights alone.
    (checkpoint / "resume.pt").unlink()
    assert problem_with_checkpoint(checkpoint, ("model.safetensors",)) is None
    assert problem_with_checkpoint(checkpoint) == "resume.pt is missing"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "does not list 'model.safetensors'"),
        (json.dumps({"model.safetensors": "0"}), "model.safetensors changed after"),
    ],
)
def test_damage_is_named(content: str, problem: str, checkpoint: Path) -> None:
    (checkpoint / DIGESTS).write_text(content)
    assert problem in str(problem_with_checkpoint(checkpoint))


@pytest.mark.parametrize("content", ["[]", "{", DEEP])
def test_extents_that_are_no_object_are_damage_whatever_the_digests_say(
    content: str, checkpoint: Path
) -> None:
    (checkpoint / "tables.json").write_text(content)
    write_digests(checkpoint / DIGESTS)
    assert problem_with_checkpoint(checkpoint) == "tables.json is not a JSON object"
