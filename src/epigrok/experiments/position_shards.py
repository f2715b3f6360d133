"""Metrics per context length: a small file per evaluation, one Parquet table when the run is done.

Small files need nothing but safetensors, so a training machine needs no database library; one table
is what queries want.
"""

import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from epigrok.experiments.run_files import PARQUET
from epigrok.experiments.sql_text import quoted_text
from epigrok.files import write_by

_KEYS = {"step": np.int32, "split": object, "posterior": object, "num_samples": np.int32}


def forget_positions_after(run_path: Path, step: int) -> None:
    """Drop the files of evaluations past `step`."""
    for shard in position_shards(run_path):
        if _step_of(shard) > step:
            shard.unlink()


def position_shards(run_path: Path) -> list[Path]:
    """Files of single evaluations, in order of steps."""
    return sorted((run_path / "positions").glob("step-*.safetensors"), key=_step_of)


def position_columns(run_path: Path) -> dict[str, Any]:
    """All evaluations not yet merged, as columns: one row per step, split, posterior and length."""
    keys: dict[str, list[Any]] = {name: [] for name in _KEYS}
    lengths: list[Any] = [np.empty(0, np.int16)]
    parts: list[dict[str, Any]] = []
    for shard in position_shards(run_path):
        try:
            tables, names = _tables_of(shard)
        except (SafetensorError, OSError) as error:
            # One evaluation less is no reason to lose the others, or the run.
            warnings.warn(f"{shard} is damaged and left out: {error}", stacklevel=2)
            continue
        for table, metrics in tables.items():
            # A split that asks nothing at a context length has no row there.
            is_asked = ~np.isnan(metrics[0])
            split, posterior, num_samples = table.split("/")
            row = (_step_of(shard), split, posterior, int(num_samples))
            for column, key in zip(keys.values(), row):
                column += [key] * int(is_asked.sum())
            lengths.append(1 + np.flatnonzero(is_asked).astype(np.int16))
            parts.append(dict(zip(names, metrics[:, is_asked])))
    return {
        **{name: np.array(keys[name], dtype=kind) for name, kind in _KEYS.items()},
        "context_length": np.concatenate(lengths),
        **_joined(parts),
    }


def merge_positions(run_path: Path) -> None:
    """Write one Parquet table of all evaluations; on a machine without DuckDB, leave the files."""
    if not position_shards(run_path) or find_spec("duckdb") is None:
        return
    import duckdb

    def fill(unfinished: Path) -> None:
        with duckdb.connect() as connection:
            connection.register("positions", position_columns(run_path))
            connection.execute(
                f"copy positions to {quoted_text(unfinished)} (format parquet, compression zstd)"
            )

    write_by(run_path / PARQUET, fill)


def remove_position_shards(run_path: Path) -> None:
    """Remove the files that the Parquet table replaces."""
    if (run_path / PARQUET).exists():
        shutil.rmtree(run_path / "positions", ignore_errors=True)


def _tables_of(shard: Path) -> tuple[dict[str, Any], list[str]]:
    """Metrics by split, posterior and number of samples, and the metrics' names."""
    with safe_open(shard, framework="numpy") as file:
        tables = {name: file.get_tensor(name) for name in sorted(file.keys())}
        return tables, file.metadata()["metrics"].split(",")


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns one after another; NaN where an evaluation by an older version knew no such one."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate(
            [part.get(name, np.full_like(part["accuracy"], np.nan)) for part in parts]
        )
        for name in names
    }


def _step_of(shard: Path) -> int:
    return int(shard.stem.removeprefix("step-"))
