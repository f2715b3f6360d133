"""The run directory: all that is known of a run, and the only thing later stages read.

config.json            the complete RunConfig
provenance.json        commit, versions, devices
world.safetensors      tasks, inputs and hold-outs
metrics.jsonl          one row per step x split x posterior
training.jsonl         loss, gradient norm and learning rate at evaluated steps
timings.jsonl          seconds spent; kept apart so that the files above repeat bit for bit
positions/             per context length, one file per evaluated step, until the run is done:
positions-0.parquet    … then one table
checkpoints/step-N/    weights, and for the newest two what resuming needs
status.json            where the run stands
DONE                   written last
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from epigrok.config import RunConfig, differing_fields, from_json, to_json
from epigrok.errors import UserError
from epigrok.evaluation import EvaluationRow
from epigrok.experiments.positions import forget_positions_after, write_positions
from epigrok.experiments.provenance import provenance, session
from epigrok.files import (
    append_json_lines,
    keep_json_lines,
    make_writable_directory,
    remove_unfinished,
    write_file,
    write_json,
)
from epigrok.tasks import sample_world

TABLES = ("metrics", "training", "timings")


@dataclass(frozen=True)
class RunDirectory:
    """Paths and files of one run."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints live."""
        return self.path / "checkpoints"

    @property
    def is_done(self) -> bool:
        """Whether the run took its last step and wrote everything down."""
        return (self.path / "DONE").exists()

    def table(self, name: str) -> Path:
        """The JSON-lines file of table `name`."""
        return self.path / f"{name}.jsonl"

    def config(self) -> RunConfig:
        """The configuration the run was started with."""
        path = self.path / "config.json"
        try:
            return from_json(json.loads(path.read_text()))
        except FileNotFoundError:
            raise UserError(f"{self.path} is not a run directory: it has no config.json") from None
        except json.JSONDecodeError as error:
            raise UserError(f"{path} is not valid JSON: {error}") from error

    def world(self) -> dict[str, Tensor]:
        """The tasks and hold-outs the run was started with."""
        return load_file(self.path / "world.safetensors")

    def status(self) -> dict[str, Any]:
        """Where the run stands, as last written."""
        path = self.path / "status.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def write_status(self, **values: Any) -> None:
        """Say where the run stands."""
        write_json(self.path / "status.json", values)

    def mark_done(self) -> None:
        """Declare the run finished."""
        write_file(self.path / "DONE", "")


def open_or_create(path: Path, config: RunConfig, device: torch.device) -> RunDirectory:
    """The directory of a run: made and filled, or checked to belong to the same config."""
    run = RunDirectory(path)
    make_writable_directory(path)
    if (path / "config.json").exists():
        differences = differing_fields(run.config(), config)
        if differences:
            raise UserError(
                f"{path} holds a run with another configuration; differing fields: "
                + "; ".join(differences)
            )
        remove_unfinished(path)
        record = json.loads((path / "provenance.json").read_text())
        record["sessions"].append(session(device))
        write_json(path / "provenance.json", record)
        return run
    make_writable_directory(run.checkpoints)
    save_file(sample_world(config.task, config.task_seed), path / "world.safetensors")
    write_json(path / "provenance.json", provenance(device))
    # Last, because its presence says that the others are there.
    write_json(path / "config.json", to_json(config))
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
        (
            {
                "step": step,
                "split": row.split,
                "posterior": row.posterior,
                "num_samples": row.num_samples,
                "num_rows": row.num_rows,
                **row.summary,
            }
            for row in rows
        ),
    )
