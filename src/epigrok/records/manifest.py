"""What a finished run must hold: the content of its DONE file.

DONE lists every table with its rows, bytes and digest, and the digest of every other file that
later stages read. A run is finished if DONE says so and belongs to its configuration; whether the
files still are as listed is what `epigrok check` finds out.
"""

import json
from pathlib import Path
from typing import Any

from epigrok.errors import UserError
from epigrok.evaluation.schema import TRAINING_TABLES
from epigrok.files import digest_of, read_regular

CONFIG, DESCRIPTION = "config.json", "run.json"
WORLD, PARQUET = "world.safetensors", "positions-0.parquet"
DONE = "DONE"
_FILES = (CONFIG, DESCRIPTION, WORLD, PARQUET)


def manifest_of(path: Path, tables: dict[str, Path], step: int) -> dict[str, Any]:
    """The manifest of a run directory as it is now, at its last step."""
    return {
        "step": step,
        "tables": {
            name: {
                "rows": file.read_bytes().count(b"\n"),
                "bytes": file.stat().st_size,
                "digest": digest_of(file),
            }
            for name, file in tables.items()
            if name in TRAINING_TABLES and file.exists()
        },
        "files": {name: digest_of(path / name) for name in _FILES if (path / name).exists()},
    }


def read_manifest(path: Path) -> dict[str, Any] | None:
    """What DONE says; None if there is none, or one that is no manifest of this directory."""
    try:
        values = json.loads(read_regular(path / DONE))
        config = digest_of(path / CONFIG)
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError, UserError):
        return None
    if not isinstance(values, dict) or not isinstance(values.get("files"), dict):
        return None
    is_own = values["files"].get(CONFIG) == config and type(values.get("step")) is int
    return values if is_own and isinstance(values.get("tables"), dict) else None
