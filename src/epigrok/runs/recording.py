"""Write into a run directory: create it, or continue it, and add evaluations to its tables."""

import json
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from epigrok.config import RunConfig, differing_fields
from epigrok.config.posterior import POINT
from epigrok.errors import UserError
from epigrok.evaluation import ContextRow, Evaluation, EvaluationRow
from epigrok.evaluation.schema import (
    ACCURACY_FINAL,
    EPISTEMIC_FINAL,
    METRIC_NAMES,
    TRAINING_TABLES,
)
from epigrok.files import own_path
from epigrok.records.directory import CONFIG, STATUS, SWEEP, WORLD, RunDirectory
from epigrok.records.position_shards import position_folder
from epigrok.records.run_tables import RunTables
from epigrok.runs.describing import describe, write_identity
from epigrok.runs.provenance import provenance, this_process
from epigrok.tasks import sample_world
from epigrok.workspace import Workspace


def require_same_config(run: RunDirectory, config: RunConfig) -> None:
    """Refuse a directory that holds a run of another configuration."""
    differences = differing_fields(run.config(), config)
    if differences:
        raise UserError(
            f"{run.path} holds a run with another configuration; differing fields: "
            + "; ".join(differences)
        )


def open_or_create(
    path: Path,
    config: RunConfig,
    device: torch.device,
    workspace: Workspace,
    start_over: bool = False,
) -> RunDirectory:
    """Create the directory of a run, or check that it belongs to the same configuration.

    A sweep prepares directories with a description and a configuration; the rest is added here.
    The caller holds the lease, and with it the workspace.
    """
    run = RunDirectory(path)
    for folder in (run.checkpoints, position_folder(path)):
        own_path(path, folder.name)
    workspace.make_directory(run.checkpoints)
    is_known = (path / CONFIG).exists()
    if is_known:
        require_same_config(run, config)
    else:
        _require_free(run)
    world = path / WORLD
    # A killed process may have left a world without a configuration, perhaps of another run.
    if start_over or not (is_known and world.exists()):
        workspace.write_file(world, save(sample_world(config.task, config.task_seed)))
    _note_process(run, config, device, workspace)
    if not is_known:
        write_identity(path, config, workspace)
    return run


def _require_free(run: RunDirectory) -> None:
    """Refuse a directory that has files of a run's names, but is not known to be one."""
    if (run.path / SWEEP).exists():
        raise UserError(f"{run.path} holds a sweep; choose another directory")
    if any(run.checkpoints.iterdir()):
        raise UserError(f"{run.path} holds checkpoints of an unknown run; choose another directory")
    # A run writes these after its configuration, so they are somebody else's.
    names = [STATUS, position_folder(run.path).name, *(run.table(t).name for t in TRAINING_TABLES)]
    if found := [name for name in names if (run.path / name).exists()]:
        raise UserError(
            f"{run.path} has a {found[0]} but no {CONFIG}, so it is not the directory of a run; "
            "choose another"
        )


def _note_process(
    run: RunDirectory, config: RunConfig, device: torch.device, workspace: Workspace
) -> None:
    """Add this process to the provenance; move a damaged provenance to another name."""
    plugins = describe(config).plugins
    record, values = run.path / "provenance.json", run.provenance()
    if record.exists() and not isinstance(values.get("processes"), list):
        aside = next(p for n in count() if not (p := run.path / f"provenance-{n}.json").exists())
        workspace.move(record, aside)
        warnings.warn(f"{record} is damaged and was moved to {aside.name}", stacklevel=2)
    if record.exists():
        values["processes"] = [*values["processes"], this_process(device, plugins)]
    else:
        values = provenance(device, plugins)
    workspace.write_json(record, values)


def record_evaluation(tables: RunTables, evaluation: Evaluation) -> None:
    """Append an evaluation to its tables: over all context lengths, and by context length."""
    step = evaluation.step
    tables.write_positions(step, positions_content(evaluation))
    for name, rows in evaluation.tables():
        tables.append(
            name, ({**row_identity(step, row), **row.summary, **row.facts} for row in rows)
        )
    if evaluation.final:
        tables.append("calibration", _calibration(step, evaluation.final))


def _calibration(step: int, rows: list[EvaluationRow]) -> list[dict[str, Any]]:
    """How often predictions of each confidence were right; empty bins are left out."""
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


def positions_content(evaluation: Evaluation) -> bytes:
    """The metrics of one evaluation by context length, as the content of one small file."""
    rows = [(table, row) for table, of_table in evaluation.tables() for row in of_table]
    tensors = {
        str(number): torch.stack([row.per_context_length[metric] for metric in METRIC_NAMES])
        .float()
        .cpu()
        for number, (_, row) in enumerate(rows)
    }
    keys = [[table, row.split, row.posterior, row.num_samples] for table, row in rows]
    metadata = {"metrics": json.dumps(METRIC_NAMES), "rows": json.dumps(keys)}
    return save(tensors, metadata=metadata)


def row_identity(step: int, row: EvaluationRow | ContextRow) -> dict[str, str | int]:
    """The key of a row, and the numbers of samples and sequences behind it."""
    return {
        "step": step,
        "split": row.split,
        "posterior": row.posterior,
        "num_samples": row.num_samples,
        "num_sequences": row.num_sequences,
    }


def status_scores(rows: list[EvaluationRow]) -> dict[str, dict[str, float]]:
    """Accuracy of `point`, or else of the first posterior; EU of the first that has any."""
    names = [row.posterior for row in rows]
    accurate = POINT if POINT in names else names[0]
    uncertain = next((row.posterior for row in rows if row.num_samples > 1), None)
    return {
        column: {row.split: row.summary[column] for row in rows if row.posterior == posterior}
        for column, posterior in ((ACCURACY_FINAL, accurate), (EPISTEMIC_FINAL, uncertain))
    }


def point_accuracy(rows: list[EvaluationRow], split: str) -> float | None:
    """Accuracy of `point` on a split's last answers; None where it was not evaluated."""
    return next(
        (r.summary[ACCURACY_FINAL] for r in rows if (r.posterior, r.split) == (POINT, split)), None
    )
