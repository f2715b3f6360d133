"""Filling a run directory: made once, continued by every process that works on the run."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from epigrok.config import RunConfig, differing_fields
from epigrok.config.posterior import POINT
from epigrok.errors import UserError
from epigrok.evaluation import ContextRow, Evaluation, EvaluationRow
from epigrok.evaluation.schema import ACCURACY, EU, METRIC_NAMES, TRAINING_TABLES
from epigrok.files import (
    append_json_lines,
    keep_json_lines,
    make_writable_directory,
    remove_unfinished,
    write_file,
    write_json,
)
from epigrok.records.directory import CONFIG, SWEEP, RunDirectory
from epigrok.records.position_shards import forget_positions_after, shard_path
from epigrok.runs.describing import describe, write_identity
from epigrok.runs.provenance import provenance, this_process
from epigrok.tasks import sample_world


def require_same_config(run: RunDirectory, config: RunConfig) -> None:
    """Refuse a directory that holds a run of another configuration."""
    differences = differing_fields(run.config(), config)
    if differences:
        raise UserError(
            f"{run.path} holds a run with another configuration; differing fields: "
            + "; ".join(differences)
        )


def open_or_create(path: Path, config: RunConfig, device: torch.device) -> RunDirectory:
    """The directory of a run: made and filled, or checked to belong to the same config.

    A sweep leaves directories with a description and a configuration; what is missing is added.
    The caller holds the lease.
    """
    run = RunDirectory(path)
    make_writable_directory(path)
    make_writable_directory(run.checkpoints)
    remove_unfinished(path)
    is_known = (path / CONFIG).exists()
    if is_known:
        require_same_config(run, config)
    elif (path / SWEEP).exists() or any(run.checkpoints.iterdir()):
        holds = "a sweep" if (path / SWEEP).exists() else "checkpoints of an unknown run"
        raise UserError(f"{path} holds {holds}; choose another directory")
    world, record = path / "world.safetensors", path / "provenance.json"
    # A world without a configuration is what a killed process left of who knows which run.
    if not (is_known and world.exists()):
        write_file(world, save(sample_world(config.task, config.task_seed)))
    plugins = describe(config).plugins
    if record.exists():
        values = run.provenance()
        values["processes"] = [*values.get("processes", []), this_process(device, plugins)]
        write_json(record, values)
    else:
        write_json(record, provenance(device, plugins))
    if not is_known:
        write_identity(path, config)
    return run


def forget_rows_after(run: RunDirectory, step: int) -> None:
    """Drop what was recorded past `step`, so that it can be recorded again."""
    for name in TRAINING_TABLES:
        keep_json_lines(run.table(name), lambda row: row["step"] <= step)
    forget_positions_after(run.path, step)


def record_evaluation(run: RunDirectory, evaluation: Evaluation) -> None:
    """Append an evaluation to its tables, by context length and over all of them."""
    step = evaluation.step
    write_positions(run, evaluation)
    for table, rows in evaluation.tables():
        append_json_lines(
            run.table(table),
            ({**row_identity(step, row), **row.summary, **row.facts} for row in rows),
        )
    if evaluation.final:
        append_json_lines(run.table("calibration"), _calibration(step, evaluation.final))


def _calibration(step: int, rows: list[EvaluationRow]) -> list[dict[str, Any]]:
    """How often predictions of each confidence were right; bins without any are left out."""
    return [
        {
            **row_identity(step, row),
            "bin": number,
            "count": int(count),
            "accuracy": correct / count,
            "confidence": confidence / count,
        }
        for row in rows
        for number, (count, correct, confidence) in enumerate(row.reliability_3M.T.tolist())
        if count
    ]


def write_positions(run: RunDirectory, evaluation: Evaluation) -> None:
    """Write the metrics of one evaluation by context length, as one small file."""
    rows = [(table, row) for table, of_table in evaluation.tables() for row in of_table]
    tensors = {
        str(number): torch.stack([row.per_context_length[metric] for metric in METRIC_NAMES])
        .float()
        .cpu()
        for number, (_, row) in enumerate(rows)
    }
    keys = [[table, row.split, row.posterior, row.num_samples] for table, row in rows]
    metadata = {"metrics": json.dumps(METRIC_NAMES), "rows": json.dumps(keys)}
    path = shard_path(run.path, evaluation.step)
    path.parent.mkdir(exist_ok=True)
    write_file(path, save(tensors, metadata=metadata))


def row_identity(step: int, row: EvaluationRow | ContextRow) -> dict[str, str | int]:
    """Where a row belongs, and how much is behind it."""
    return {
        "step": step,
        "split": row.split,
        "posterior": row.posterior,
        "num_samples": row.num_samples,
        "num_sequences": row.num_sequences,
    }


def status_scores(rows: list[EvaluationRow]) -> dict[str, dict[str, float]]:
    """Accuracy of the point, or of the first posterior; EU of the first that has any."""
    names = [row.posterior for row in rows]
    accurate = POINT if POINT in names else names[0]
    uncertain = next((row.posterior for row in rows if row.num_samples > 1), None)
    return {
        column: {row.split: row.summary[column] for row in rows if row.posterior == posterior}
        for column, posterior in ((ACCURACY, accurate), (EU, uncertain))
    }
