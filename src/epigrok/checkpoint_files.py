"""The files of a checkpoint, and a check that none has changed. No torch."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from epigrok.files import digest_of, read_json

WEIGHTS, RESUME, DIGESTS = "model.safetensors", "resume.pt", "digests.json"
EXTENTS = "tables.json"
"""How far each table had been written, to the byte."""
DEVIATIONS = "deviations.safetensors"
"""Standard deviations of the posterior that the optimiser carries, around the weights."""


def checkpoint_path(root: Path, step: int) -> Path:
    """Where the checkpoint of `step` lives."""
    return root / f"step-{step}"


def checkpoint_steps(root: Path) -> list[int]:
    """Steps whose weights are there, in order."""
    return sorted(steps_with(root, WEIGHTS))


def write_digests(path: Path) -> None:
    """Write down, in `path`, the digest of every file beside it."""
    others = sorted(file for file in path.parent.iterdir() if file != path)
    digests = {file.name: digest_of(file) for file in others}
    path.write_text(json.dumps(digests))


def problem_with_checkpoint(directory: Path, files: Sequence[str] | None = None) -> str | None:
    """How files of a checkpoint differ from what was written: the first difference, or None.

    Args:
        directory: The checkpoint.
        files: The files to compare; by default all that resuming needs.
    """
    try:
        digests = read_json(directory / DIGESTS)
        wanted = (WEIGHTS, RESUME, EXTENTS, *digests) if files is None else files
        for name in dict.fromkeys(wanted):
            if digest_of(directory / name) != digests[name]:
                return f"{name} changed after it was written"
            if name == EXTENTS and not _is_object(directory / name):
                return f"{name} is not a JSON object"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except KeyError as error:
        return f"{DIGESTS} does not list {error}"
    except (ValueError, TypeError) as error:
        return f"{DIGESTS} cannot be read: {error}"
    return None


def _is_object(path: Path) -> bool:
    try:
        return isinstance(read_json(path), dict)
    except ValueError:
        return False


def steps_with(root: Path, file: str | None = None) -> Iterator[int]:
    """Steps that have a directory, with a certain file in it if one is named."""
    for directory in root.glob("step-*"):
        step = directory.name.removeprefix("step-")
        if step.isdigit() and (file is None or (directory / file).exists()):
            yield int(step)
