"""Parquet files."""

import errno
from pathlib import Path

import duckdb
import pytest

from epigrok.tables.parquet import write_parquet
from epigrok.tables.sql_text import quoted_path


def test_rows_are_written(tmp_path: Path) -> None:
    file = tmp_path / "it's.parquet"
    with duckdb.connect() as connection:
        write_parquet(connection, "select 1 as a union all select 2", file)
        assert connection.sql(f"from {quoted_path(file)} order by a").fetchall() == [(1,), (2,)]


def test_a_full_disk_is_an_error_of_the_system() -> None:
    with duckdb.connect() as connection:
        with pytest.raises(OSError, match="No space left on device") as caught:
            write_parquet(connection, "select 1 as a", Path("/dev/full"))
        assert caught.value.errno == errno.ENOSPC


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with duckdb.connect() as connection, pytest.raises(duckdb.IOException):
        write_parquet(connection, "select 1 as a", tmp_path / "nowhere" / "x.parquet")
