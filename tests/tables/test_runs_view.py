"""The types that configurations of different runs have in common."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_runs import change_config, make_sweep

from epigrok.tables import open_sweep
from epigrok.tables.runs_view import make_runs_view, type_of_values


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "BIGINT"),
        ([1, 2.5, None], "DOUBLE"),
        ([True, None], "BOOLEAN"),
        ([True, 2], "BIGINT"),
        (["a", 1], "VARCHAR"),
        ([None], "VARCHAR"),
        ([], "VARCHAR"),
        ([[1, 2.5], [3]], "DOUBLE[]"),
        ([["a"], []], "VARCHAR[]"),
        ([[1], 1], "JSON"),
        ([{"a": 1}, 2], "JSON"),
    ],
)
def test_a_column_has_the_narrowest_type_that_fits_all(values: list[Any], kind: str) -> None:
    assert type_of_values(values) == kind


def test_without_runs_the_view_is_empty_and_has_its_columns() -> None:
    with duckdb.connect() as connection:
        make_runs_view(connection, [])
        found = connection.sql("from runs")
        assert (found.columns, found.fetchall()) == (["run_id", "state"], [])


def test_a_field_of_the_configuration_never_takes_the_place_of_the_runs_name(
    tmp_path: Path,
) -> None:
    (run,) = make_sweep(tmp_path / "sweep", [500], [600])
    fields = {"run_id": "evil", "RUN_ID": "worse", "state": 3, 'a["b': [1], "Preset": {"x": []}}
    (run.path / "DONE").unlink()
    change_config(run, **fields)
    store = open_sweep(run.path)
    assert store.sql("select run_id, state from runs").fetchall() == [(run.path.name, "lost")]
    assert store.export(tmp_path / "all.parquet") == 44
