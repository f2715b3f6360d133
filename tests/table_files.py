"""Tables of runs that no training wrote."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from epigrok.evaluation import Evaluation
from epigrok.files import workspace_in
from epigrok.records.directory import WORLD, RunDirectory
from epigrok.records.position_shards import shard_path
from epigrok.records.run_tables import RunTables
from epigrok.runs.recording import positions_content, record_evaluation
from epigrok.workspace import json_line


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add lines to a table."""
    with path.open("a") as file:
        file.writelines(json_line(dict(row)) for row in rows)


def write_table(run: RunDirectory, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a whole table in place of what was there."""
    run.table(table).unlink(missing_ok=True)
    append_rows(run.table(table), rows)


def write_positions(run: RunDirectory, *evaluations: Evaluation) -> None:
    """Write metrics by context length alone."""
    for evaluation in evaluations:
        path = shard_path(run.path, evaluation.step)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(positions_content(evaluation))


def record(run: RunDirectory, *evaluations: Evaluation) -> dict[str, Any]:
    """Write evaluations as a new run would, and tell how far its tables were written."""
    world = run.path / WORLD
    if not world.exists():
        world.write_bytes(uuid4().bytes)
    with workspace_in(run.path) as workspace:
        tables = RunTables(run, workspace, {})
        for evaluation in evaluations:
            record_evaluation(tables, evaluation)
        tables.close()
        return tables.extents()
