"""The tables of a query, read by a parser and not by its letters."""

import duckdb
import pytest

from epigrok.tables.query_parser import tables_named_in


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("from metrics join runs using (run_id)", {"metrics", "runs"}),
        ("with a as (from final) select * from a", {"a", "final"}),
        ('select * from "runs" r, Latest', {"runs", "latest"}),
        ("select 'from metrics' as metrics from runs -- not from final", {"runs"}),
        ("describe metrics", {"metrics"}),
        ("pivot metrics on split using max(step)", None),
        ("this is no query", None),
    ],
)
def test_tables_are_what_the_parser_says(query: str, tables: set[str] | None) -> None:
    with duckdb.connect() as connection:
        assert tables_named_in(query, connection) == tables
