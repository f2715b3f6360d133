"""The view `runs`: one row per run, its state and its configuration under dotted names."""

import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from typing import Any

from epigrok.records.directory import RunDirectory
from epigrok.records.status import read_status
from epigrok.tables.queries import json_lines_query

_WIDER = ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR")
"""From narrow to wide; a column of several types gets the widest."""
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


def make_runs_view(connection: Any, runs: Sequence[RunDirectory]) -> None:
    """Create the table `runs` in a database."""
    now = time.time()
    rows = []
    for run in runs:
        status = read_status(run, now)
        # Set last, so that no field of a configuration replaces them.
        rows.append({**status.config, "run_id": run.path.name, "state": status.state})
    names = dict.fromkeys(["run_id", "state", *(name for row in rows for name in row)])
    types = {name: type_of_values(row.get(name) for row in rows) for name in names}
    # DuckDB reads JSON only from files.
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        source = json_lines_query([file.name], types)
        connection.execute(f"create temp table runs as select * exclude (filename) {source}")


def type_of_values(values: Iterable[Any]) -> str:
    """The DuckDB type that fits all values read from JSON; null fits every type."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, list) for value in present):
        if not all(isinstance(value, list) for value in present):
            return "JSON"
        return f"{type_of_values(item for value in present for item in value)}[]"
    kinds = {_TYPES.get(type(value), "JSON") for value in present}
    if not kinds <= set(_WIDER):
        return "JSON"
    return max(kinds, key=_WIDER.index, default="VARCHAR")
