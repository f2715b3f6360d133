"""Filling a run directory: made once, continued by every process that works on the run."""

from pathlib import Path

import torch
from safetensors.torch import save

from epigrok.config import RunConfig, differing_fields, to_json
from epigrok.errors import UserError
from epigrok.evaluation import ContextRow, EvaluationRow
from epigrok.experiments.position_shards import forget_positions_after
from epigrok.experiments.positions import write_positions
from epigrok.experiments.provenance import provenance, this_process
from epigrok.experiments.run_files import CONFIG, DESCRIPTION, TABLES, RunDirectory
from epigrok.files import (
    append_json_lines,
    keep_json_lines,
    make_writable_directory,
    remove_unfinished,
    write_file,
    write_json,
)
from epigrok.tasks import sample_world

STATUS_SCORES = ("accuracy_final", "epistemic_final")
"""Columns of the newest evaluation that `status.json` repeats, per split."""


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

    A sweep leaves directories with nothing but `config.json`; what is missing is added. The caller
    holds the lease.
    """
    run = RunDirectory(path)
    make_writable_directory(path)
    make_writable_directory(run.checkpoints)
    remove_unfinished(path)
    is_known = (path / CONFIG).exists()
    if is_known:
        require_same_config(run, config)
    elif (path / DESCRIPTION).exists() or any(run.checkpoints.iterdir()):
        holds = "a sweep" if (path / DESCRIPTION).exists() else "checkpoints of an unknown run"
        raise UserError(f"{path} holds {holds}; choose another directory")
    world, record = path / "world.safetensors", path / "provenance.json"
    # A world without a configuration is what a killed process left of who knows which run.
    if not (is_known and world.exists()):
        write_file(world, save(sample_world(config.task, config.task_seed)))
    if record.exists():
        values = run.provenance()
        values["processes"] = [*values.get("processes", []), this_process(device)]
        write_json(record, values)
    else:
        write_json(record, provenance(device))
    if not is_known:
        write_json(path / CONFIG, to_json(config))
    return run


def forget_rows_after(run: RunDirectory, step: int) -> None:
    """Drop what was recorded past `step`, so that it can be recorded again."""
    for name in TABLES:
        keep_json_lines(run.table(name), lambda row: row["step"] <= step)
    forget_positions_after(run.path, step)


def record_evaluation(run: RunDirectory, step: int, rows: list[EvaluationRow]) -> None:
    """Append an evaluation to the metrics and write its per-context-length part."""
    write_positions(run.path, step, rows)
    append_json_lines(
        run.table("metrics"),
        ({**row_identity(step, row), **row.summary, **row.facts} for row in rows),
    )


def record_calibration(run: RunDirectory, step: int, rows: list[EvaluationRow]) -> None:
    """Append how often predictions of each confidence were right; bins without any are left out."""
    append_json_lines(
        run.table("calibration"),
        (
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
        ),
    )


def row_identity(step: int, row: EvaluationRow | ContextRow) -> dict[str, str | int]:
    """The columns that tell a row of a table from all others of its run."""
    return {
        "step": step,
        "split": row.split,
        "posterior": row.posterior,
        "num_samples": row.num_samples,
        "num_rows": row.num_rows,
    }


def status_scores(rows: list[EvaluationRow]) -> dict[str, dict[str, float]]:
    """Accuracy of the first posterior tracked, epistemic uncertainty of the first that has any."""
    sampled = [row for row in rows if row.num_samples > 1]
    return {
        name: {
            row.split: row.summary[name]
            for row in used
            if row.posterior == used[0].posterior and name in row.summary
        }
        for name, used in zip(STATUS_SCORES, (rows, sampled))
    }
