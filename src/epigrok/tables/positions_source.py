"""Where a query finds metrics by context length: in Parquet tables, and in small files."""

from collections.abc import Mapping, Sequence
from typing import Any

from epigrok.evaluation.schema import STEP
from epigrok.records.directory import PARQUET, RunDirectory
from epigrok.tables.sql_text import quoted_name, quoted_paths, quoted_text

RUN_ID = "split_part(filename, '/', -2) as run_id"
"""A run is named by its directory."""


def positions_source(
    connection: Any,
    made: set[str],
    table: str,
    types: Mapping[str, str],
    runs: Sequence[RunDirectory],
) -> str:
    """A query for a table by context length; small files are registered in the database.

    Args:
        connection: To the database.
        made: What was registered there before; added to.
        table: Its name.
        types: The columns that are wanted, and their types.
        runs: Whose tables.
    """
    evaluation = {"positions": "metrics"}.get(table, table.removesuffix("_positions"))
    columns = ", ".join(quoted_name(name) for name in types)
    chosen = f"where evaluation = {quoted_text(evaluation)}"
    # A machine without DuckDB leaves the small files of a finished run as they are.
    merged = [run for run in runs if (run.path / PARQUET).exists()]
    parts = []
    if merged:
        paths = quoted_paths(run.path / PARQUET for run in merged)
        # Null where an older version of epigrok did not measure something.
        parts.append(
            f"""select run_id, {columns} from ({empty_table(types)} union all by name
                select {RUN_ID}, * exclude (filename) from read_parquet({paths},
                filename = true, union_by_name = true, hive_partitioning = false)) {chosen}"""
        )
    for run in runs:
        if run not in merged and _register_shards(connection, made, run):
            name = quoted_text(run.path.name)
            parts.append(f"select {name} as run_id, {columns} from {_shards_name(run)} {chosen}")
    return " union all by name ".join(parts) or empty_table(types)


def empty_table(types: Mapping[str, str]) -> str:
    """A query without rows."""
    columns = ", ".join(f"null::{kind} as {quoted_name(name)}" for name, kind in types.items())
    return f"select null::varchar as run_id, {columns} where false"


def _register_shards(connection: Any, made: set[str], run: RunDirectory) -> bool:
    """Make the small files of a run that goes on readable; False if there are none."""
    # Imported here, because finished sweeps need neither NumPy nor safetensors.
    from epigrok.records.position_shards import position_columns, position_shards

    if not position_shards(run.path):
        return False
    if _shards_name(run) not in made:
        columns = position_columns(run.path)
        if not len(columns[STEP.name]):
            return False
        connection.register(_shards_name(run).strip('"'), columns)
        made.add(_shards_name(run))
    return True


def _shards_name(run: RunDirectory) -> str:
    # In digits, because DuckDB takes names for the same that differ in capitals alone.
    return quoted_name(f"shards of {run.path.name.encode().hex()}")
