"""Names, values and paths that would mean something else in SQL."""

from pathlib import Path

import duckdb
import pytest

from epigrok.tables.sql_text import quoted_name, quoted_path, quoted_paths, quoted_text

AWKWARD = ["it's", 'a "b" c', "x'; drop table t; --", "a\nb", "", "a.b"]


@pytest.mark.parametrize("text", AWKWARD)
def test_a_text_is_only_itself(text: str) -> None:
    assert duckdb.sql(f"select {quoted_text(text)}").fetchall() == [(text,)]


@pytest.mark.parametrize("name", [name for name in AWKWARD if name])
def test_a_name_is_only_itself(name: str) -> None:
    assert duckdb.sql(f"select 1 as {quoted_name(name)}").columns == [name]


def test_a_path_is_no_pattern(tmp_path: Path) -> None:
    for name in ("[a]*.csv", "a1.csv"):
        (tmp_path / name).write_text("x\n1\n")
    awkward = tmp_path / "[a]*.csv"
    assert duckdb.sql(f"from read_csv({quoted_path(awkward)})").fetchall() == [(1,)]
    both = quoted_paths([awkward, tmp_path / "a1.csv"])
    assert len(duckdb.sql(f"from read_csv({both})").fetchall()) == 2
