"""The types that configurations of different runs have in common."""

from typing import Any

import duckdb
import pytest

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
