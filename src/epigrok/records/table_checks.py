"""Check the rows of a table against its schema and against the extent that was recorded."""

from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from epigrok.columns import Column, ColumnType
from epigrok.evaluation.schema import Table
from epigrok.files import parse_json, read_regular

_KINDS: dict[ColumnType, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "flag": (bool,),
}


def extent_problem(content: bytes, extent: Mapping[str, Any], is_whole: bool) -> str | None:
    """How a table differs from its recorded extent; None if it does not.

    Args:
        content: The content of its file.
        extent: Rows, bytes and digest, from a checkpoint or DONE.
        is_whole: Whether nothing may follow, as in a finished run.
    """
    rows, size = extent.get("rows"), extent.get("bytes")
    if type(rows) is not int or type(size) is not int:
        return "its recorded extent is damaged"
    if len(content) < size or (is_whole and len(content) > size):
        found = content.count(b"\n")
        return f"it has {found} rows and {len(content)} bytes, not {rows} and {size}"
    if blake2b(content[:size]).hexdigest() != extent.get("digest"):
        return f"its {rows} rows changed after they were written: the digest differs"
    return None


def row_problem(
    table: Table, facts: Mapping[str, ColumnType], content: bytes, may_be_cut: bool
) -> str | None:
    """The first problem with the rows of a table, or None.

    Args:
        table: What it should hold.
        facts: Columns that its posteriors add, and their types.
        content: The content of its file.
        may_be_cut: Whether the last line may be incomplete, as in a run that is not finished.
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
            return f"its line {number} is not a JSON object"
        for problem in _column_problems(row, types, table.key):
            return f"its line {number} {problem}"
        key = tuple(row.get(column.name, "") for column in table.key)
        if key in seen:
            names = ", ".join(column.name for column in table.key)
            return f"its line {number} repeats the {names} of an earlier one"
        seen.add(key)
    return None


def unfit_column(table: Table, row: Mapping[str, Any], needed: Collection[str] = ()) -> str | None:
    """The first column of the table that a row has with a wrong type or, if needed, not at all."""
    for column in table.columns:
        value = row.get(column.name)
        if value is None and column.name in needed:
            return f"has no {column.name}"
        if value is not None and not _fits(value, column.type):
            return f"has {value!r} as {column.name}, which is not of type {column.type}"
    return None


def parsed_row(line: bytes) -> dict[str, Any] | None:
    """The object that a line holds; None if it holds none."""
    try:
        row = parse_json(line, parse_constant=_refuse)
    except ValueError:
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
            yield f"has {value!r} as {name}, which is not of type {types[name]}"


def _fits(value: Any, kind: ColumnType) -> bool:
    is_flag = isinstance(value, bool)
    return is_flag == (kind == "flag") and isinstance(value, _KINDS[kind])


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
