"""Where metrics by context length are read from."""

from pathlib import Path

import duckdb
from made_runs import make_sweep

from epigrok.tables.positions_source import empty_table, positions_source


def test_runs_without_such_metrics_have_no_rows(tmp_path: Path) -> None:
    types = {"step": "BIGINT", "nll": "DOUBLE"}
    with duckdb.connect() as connection:
        runs = make_sweep(tmp_path, [500], [600])
        source = positions_source(connection, set(), "positions", types, runs)
        assert source == empty_table(types)
        relation = connection.sql(source)
        assert relation.columns == ["run_id", "step", "nll"]
        assert relation.fetchall() == []
