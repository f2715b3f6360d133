"""The files of a checkpoint, and whether they are as they were written. No torch."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from epigrok.files import digest_of

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


def write_digests(directory: Path) -> None:
    """Write down the digest of every file of a new checkpoint."""
    digests = {path.name: digest_of(path) for path in sorted(directory.iterdir())}
    (directory / DIGESTS).write_text(json.dumps(digests))


def problem_with_checkpoint(directory: Path, files: Sequence[str] | None = None) -> str | None:
    """What proves that files of a checkpoint are not as they were written; None if nothing does.

    Args:
        directory: The checkpoint.
        files: Which ones; by default all that it takes to resume.
    """
    try:
        digests = json.loads((directory / DIGESTS).read_text())
        wanted = (WEIGHTS, RESUME, EXTENTS, *digests) if files is None else files
        for name in dict.fromkeys(wanted):
            if digest_of(directory / name) != digests[name]:
                return f"{name} changed since it was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except KeyError as error:
        return f"{DIGESTS} does not list {error}"
    except (ValueError, TypeError) as error:
        return f"{DIGESTS} cannot be read: {error}"
    return None


def steps_with(root: Path, file: str | None = None) -> Iterator[int]:
    """Steps that have a directory, with a certain file in it if one is named."""
    for directory in root.glob("step-*"):
        step = directory.name.removeprefix("step-")
        if step.isdigit() and (file is None or (directory / file).exists()):
            yield int(step)
