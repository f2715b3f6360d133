"""The view `runs`: one row per run, its state and its configuration under dotted names."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from epigrok.records.directory import RunDirectory
from epigrok.records.status import read_status
from epigrok.tables.sql_text import quoted_text

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
    # DuckDB ignores case: of two names that differ only in case, the first counts.
    names = {"run_id": "run_id", "state": "state"}
    for row in rows:
        for name in row:
            names.setdefault(name.lower(), name)
    rows = [{name: row[name] for name in names.values() if name in row} for row in rows]
    types = {name: type_of_values(row.get(name) for row in rows) for name in names.values()}
    structure = quoted_text(json.dumps([_structure(types)]))
    connection.execute(
        f"""create temp table runs as select r.* from
            (select unnest(from_json(?::json, {structure})) as r)""",
        [json.dumps(rows)],
    )


def _structure(types: Mapping[str, str]) -> dict[str, Any]:
    """Types as DuckDB wants them for JSON: a list is a list."""

    def of(kind: str) -> Any:
        return [of(kind.removesuffix("[]"))] if kind.endswith("[]") else kind

    return {name: of(kind) for name, kind in types.items()}


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
