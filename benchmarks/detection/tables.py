"""Rows, columns and files of the benchmark's tables."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np

from benchmarks.detection.judging import is_fitted
from benchmarks.detection.scores import interval
from benchmarks.detection.statistics import Table

Row = dict[str, Any]


def select(table: Table, mask: np.ndarray) -> Table:
    """The rows that the mask keeps."""
    return {name: values[mask] for name, values in table.items()}


def fitted(table: Table) -> Table:
    """Looks at which the training set is fitted."""
    return select(table, is_fitted(table["train accuracy"], table["chance"]))


def bounds(name: str, drawn: np.ndarray) -> Row:
    """Both ends of an interval, as two columns."""
    low, high = interval(drawn)
    return {f"{name}, low": low, f"{name}, high": high}


def write(path: Path, rows: list[Row]) -> None:
    """A table as CSV, numbers to four digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _short(value) for key, value in row.items()})


def write_parquet(path: Path, rows: list[Row]) -> None:
    """A long table, compressed."""
    with TemporaryDirectory() as folder:
        as_csv = Path(folder) / "rows.csv"
        write(as_csv, rows)
        duckdb.sql(f"COPY (FROM read_csv('{as_csv}')) TO '{path}' (COMPRESSION zstd)")


def _short(value: Any) -> Any:
    return f"{float(value):.4g}" if isinstance(value, float | np.floating) else value
