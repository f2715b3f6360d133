"""Write a Parquet file with DuckDB; a full disk is an `OSError`, as everywhere else."""

import errno
import os
from pathlib import Path
from typing import Any

from epigrok.tables.sql_text import quoted_text


def write_parquet(connection: Any, query: str, file: Path) -> None:
    """Write the rows of a query to a file."""
    # Imported here, because a machine that only trains needs no database library.
    import duckdb

    try:
        connection.execute(
            f"copy ({query}) to {quoted_text(file)} (format parquet, compression zstd)"
        )
    except duckdb.IOException as error:
        # Its text has the system's words for the reason, among others.
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE):
            if os.strerror(number) in str(error):
                raise OSError(number, os.strerror(number)) from error
        raise
