"""Metrics per context length: a small file per evaluation, one Parquet table when the run is done.

Small files need nothing but safetensors, so a training machine needs no database library; one table
is what queries want.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from epigrok.evaluation import METRICS, EvaluationRow

PARQUET = "positions-0.parquet"


def write_positions(run_path: Path, step: int, rows: list[EvaluationRow]) -> None:
    """Write the per-context-length metrics of one evaluation."""
    tensors = {
        f"{row.split}/{row.posterior}/{row.num_samples}": torch.stack(
            [row.per_context_length[metric] for metric in METRICS]
        )
        .float()
        .cpu()
        for row in rows
    }
    directory = run_path / "positions"
    directory.mkdir(exist_ok=True)
    unfinished = directory / f"step-{step}.unfinished"
    save_file(tensors, unfinished, metadata={"metrics": ",".join(METRICS)})
    unfinished.replace(directory / f"step-{step}.safetensors")


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
    columns: dict[str, list[Any]] = {"step": [], "split": [], "posterior": [], "num_samples": []}
    lengths, values = [], []
    for shard in position_shards(run_path):
        with safe_open(shard, framework="numpy") as file:
            for name in sorted(file.keys()):
                metrics = file.get_tensor(name)
                split, posterior, num_samples = name.split("/")
                # A split that asks nothing at a context length has no row there.
                is_asked = ~np.isnan(metrics[0])
                count = int(is_asked.sum())
                columns["step"] += [_step_of(shard)] * count
                columns["split"] += [split] * count
                columns["posterior"] += [posterior] * count
                columns["num_samples"] += [int(num_samples)] * count
                lengths.append(1 + np.flatnonzero(is_asked))
                values.append(metrics[:, is_asked])
    merged = np.concatenate(values, axis=1) if values else np.empty((len(METRICS), 0), np.float32)
    return {
        "step": np.array(columns["step"], np.int32),
        "split": np.array(columns["split"], dtype=object),
        "posterior": np.array(columns["posterior"], dtype=object),
        "num_samples": np.array(columns["num_samples"], np.int16),
        "context_length": np.concatenate(lengths).astype(np.int16) if lengths else np.empty(0),
        **dict(zip(METRICS, merged)),
    }


def merge_positions(run_path: Path) -> None:
    """Write one Parquet table of all evaluations; on a machine without DuckDB, leave the files."""
    if not position_shards(run_path) or find_spec("duckdb") is None:
        return
    import duckdb

    unfinished = run_path / f"{PARQUET}.unfinished"
    with duckdb.connect() as connection:
        connection.register("positions", position_columns(run_path))
        connection.execute(
            f"copy positions to '{_quoted(unfinished)}' (format parquet, compression zstd)"
        )
    unfinished.replace(run_path / PARQUET)


def remove_position_shards(run_path: Path) -> None:
    """Remove the files that the Parquet table replaces."""
    if (run_path / PARQUET).exists():
        shutil.rmtree(run_path / "positions", ignore_errors=True)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _step_of(shard: Path) -> int:
    return int(shard.stem.removeprefix("step-"))
