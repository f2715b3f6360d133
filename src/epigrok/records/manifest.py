"""What a finished run must hold: the content of its DONE file.

DONE lists every table with its rows, bytes and digest, and the digest of every other file that
later stages read. A run is finished if it has a DONE that matches its configuration; `epigrok
check` compares the files with the list.
"""

from pathlib import Path
from typing import Any

from epigrok.checkpoint_files import checkpoint_steps
from epigrok.errors import UserError
from epigrok.evaluation.schema import TRAINING_TABLES
from epigrok.files import digest_of, read_json, read_regular

CONFIG, DESCRIPTION = "config.json", "run.json"
WORLD, PARQUET = "world.safetensors", "positions-0.parquet"
DONE = "DONE"
KEEPS_WEIGHTS = "keeps_weights"
"""Entry of DONE: false where the weights were dropped on purpose."""
CHECKPOINTS = "checkpoints"
"""Entry of DONE: the steps whose weights are kept. And the folder they are in."""
_FILES = (CONFIG, DESCRIPTION, WORLD, PARQUET)


def manifest_of(
    path: Path, tables: dict[str, Path], step: int, keeps_weights: bool = True
) -> dict[str, Any]:
    """The manifest of a run directory as it is now, at its last step."""
    return {
        "step": step,
        KEEPS_WEIGHTS: keeps_weights,
        CHECKPOINTS: checkpoint_steps(path / CHECKPOINTS) if keeps_weights else [],
        "tables": {
            name: {
                "rows": read_regular(file).count(b"\n"),
                "bytes": file.stat().st_size,
                "digest": digest_of(file),
            }
            for name, file in tables.items()
            if name in TRAINING_TABLES and file.exists()
        },
        "files": {name: digest_of(path / name) for name in _FILES if (path / name).exists()},
    }


def read_manifest(path: Path) -> dict[str, Any] | None:
    """The content of DONE; None without one, or if it is not the manifest of this directory."""
    try:
        values = read_json(path / DONE)
        config = digest_of(path / CONFIG)
    except (FileNotFoundError, NotADirectoryError, ValueError, UserError):
        return None
    if not isinstance(values, dict) or not isinstance(values.get("files"), dict):
        return None
    is_own = values["files"].get(CONFIG) == config and type(values.get("step")) is int
    return values if is_own and isinstance(values.get("tables"), dict) else None
