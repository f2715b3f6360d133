"""The per-length metrics of a finished run, merged into one Parquet table."""

from importlib.util import find_spec
from pathlib import Path

from epigrok.files import write_by
from epigrok.records.directory import PARQUET
from epigrok.records.position_shards import position_columns, position_shards
from epigrok.tables.parquet import write_parquet
from epigrok.workspace import Workspace, change


def merge_positions(run_path: Path, workspace: Workspace | None = None) -> None:
    """Write one Parquet table of all evaluations; without DuckDB, leave the files as they are."""
    if not position_shards(run_path) or find_spec("duckdb") is None:
        return
    import duckdb

    def fill(unfinished: Path) -> None:
        with duckdb.connect() as connection:
            connection.register("positions", position_columns(run_path))
            change("write", unfinished)
            write_parquet(connection, "from positions", unfinished)

    write = write_by if workspace is None else workspace.write_by
    write(run_path / PARQUET, fill)
