"""Metrics by context length while a run goes on: a small file per evaluation.

Small files need nothing but safetensors, so a training machine needs no database library. When the
run is done, `tables/positions.py` merges them into one Parquet table.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.files import parse_json
from epigrok.records.directory import PARQUET
from epigrok.workspace import Workspace

_KEYS = {"step": np.int32, "evaluation": object, "split": object, "posterior": object}
_KEYS |= {"num_samples": np.int32}


def position_folder(run_path: Path) -> Path:
    """Where the files of single evaluations lie."""
    return run_path / "positions"


def shard_path(run_path: Path, step: int) -> Path:
    """The file of the evaluation at `step`."""
    return position_folder(run_path) / f"step-{step}.safetensors"


def position_shards(run_path: Path) -> list[Path]:
    """Files of single evaluations, in order of steps."""
    return sorted(position_folder(run_path).glob("step-*.safetensors"), key=_step_of)


def position_columns(run_path: Path) -> dict[str, Any]:
    """All evaluations not yet merged, as columns.

    One row per step, evaluation (`metrics`, `final` or `exact`), split, posterior and length.
    """
    keys: dict[str, list[Any]] = {name: [] for name in _KEYS}
    lengths: list[Any] = [np.empty(0, np.int16)]
    parts: list[dict[str, Any]] = []
    for shard in position_shards(run_path):
        try:
            rows, names = _rows_of(shard)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            # Losing one evaluation must not lose the others, or the run.
            warnings.warn(f"{shard} is damaged and left out: {error}", stacklevel=2)
            continue
        for key, metrics in rows:
            # A split that asks nothing at a context length has no row there.
            is_asked = ~np.isnan(metrics[0])
            for column, value in zip(keys.values(), (_step_of(shard), *key)):
                column += [value] * int(is_asked.sum())
            lengths.append(1 + np.flatnonzero(is_asked).astype(np.int16))
            parts.append(dict(zip(names, metrics[:, is_asked])))
    return {
        **{name: np.array(keys[name], dtype=kind) for name, kind in _KEYS.items()},
        "context_length": np.concatenate(lengths),
        **{name: _joined(name, parts) for name in METRIC_NAMES},
    }


def remove_position_shards(run_path: Path, workspace: Workspace) -> None:
    """Remove the files that the Parquet table replaces."""
    if (run_path / PARQUET).exists():
        workspace.remove(position_folder(run_path))


def _rows_of(shard: Path) -> tuple[list[tuple[list[Any], Any]], list[str]]:
    """(evaluation, split, posterior, samples) and metrics of each row, and the metrics' names."""
    if not shard.is_file():
        raise ValueError("it is not a regular file")
    with safe_open(shard, framework="numpy") as file:
        metadata = file.metadata()
        keys = parse_json(metadata["rows"])
        rows = [(key, file.get_tensor(str(number))) for number, key in enumerate(keys)]
        return rows, parse_json(metadata["metrics"])


def _joined(metric: str, parts: list[dict[str, Any]]) -> Any:
    """One metric of all rows; NaN where an older version of epigrok did not know it."""
    known = (
        part[metric] if metric in part else np.full_like(next(iter(part.values())), np.nan)
        for part in parts
    )
    return np.concatenate([np.empty(0, np.float32), *known])


def _step_of(shard: Path) -> int:
    return int(shard.stem.removeprefix("step-"))
