"""Whether the rows of a table are what its schema says, and as many as there should be."""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from epigrok.columns import Column, ColumnType
from epigrok.evaluation.schema import Table
from epigrok.files import read_regular

_KINDS: dict[ColumnType, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "flag": (bool,),
}


def extent_problem(content: bytes, extent: Mapping[str, Any], is_whole: bool) -> str | None:
    """How a table differs from what was written down of it; None if it does not.

    Args:
        content: Of its file.
        extent: Rows, bytes and digest, as a checkpoint or DONE has them.
        is_whole: Whether nothing may follow, as in a finished run.
    """
    rows, size = extent.get("rows"), extent.get("bytes")
    if type(rows) is not int or type(size) is not int:
        return "what was written down of it is damaged"
    if len(content) < size or (is_whole and len(content) > size):
        found = content.count(b"\n")
        return f"it has {found} rows and {len(content)} bytes, not {rows} and {size}"
    if blake2b(content[:size]).hexdigest() != extent.get("digest"):
        return f"its {rows} rows are not as they were written: the digest differs"
    return None


def row_problem(
    table: Table, facts: Mapping[str, ColumnType], content: bytes, may_be_cut: bool
) -> str | None:
    """The first thing that is wrong with the rows of a table; None if nothing is.

    Args:
        table: What it should hold.
        facts: Columns that its posteriors add, and their types.
        content: Of its file.
        may_be_cut: Whether somebody may be writing its last line, or was killed while doing so.
    """
    types = {column.name: column.type for column in table.columns}
    types |= facts if table.has_facts else {}
    seen: set[tuple[Any, ...]] = set()
    lines = content.split(b"\n")
    if lines.pop() and not may_be_cut:
        return f"its last line, {len(lines) + 1}, is cut short"
    for number, line in enumerate(lines, start=1):
        row = parsed_row(line)
        if row is None:
            return f"its line {number} is no JSON object"
        for problem in _column_problems(row, types, table.key):
            return f"its line {number} {problem}"
        key = tuple(row.get(column.name, "") for column in table.key)
        if key in seen:
            names = ", ".join(column.name for column in table.key)
            return f"its line {number} repeats the {names} of an earlier one"
        seen.add(key)
    return None


def parsed_row(line: bytes) -> dict[str, Any] | None:
    """The object that a line holds; None if it holds none."""
    try:
        row = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def table_content(path: Path) -> bytes | None:
    """What a table's file holds; None where there is none."""
    return read_regular(path) if path.exists() else None


def _column_problems(
    row: Mapping[str, Any], types: Mapping[str, ColumnType], key: tuple[Column, ...]
) -> Iterator[str]:
    # Only ensembles have members, and older rows know nothing of them.
    for column in key:
        if column.name not in row and column.name != "members":
            yield f"has no {column.name}"
    for name, value in row.items():
        if name not in types:
            yield f"has a column {name!r} that the table does not know"
        elif value is not None and not _fits(value, types[name]):
            yield f"has {value!r} as {name}, which is no {types[name]}"


def _fits(value: Any, kind: ColumnType) -> bool:
    is_flag = isinstance(value, bool)
    return is_flag == (kind == "flag") and isinstance(value, _KINDS[kind])


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
