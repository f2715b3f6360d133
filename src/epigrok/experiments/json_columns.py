"""Which columns a set of JSON-lines files has, and their types, without reading all of them.

DuckDB can find out by itself, but looks at few files, and then a column that only later runs have
is lost; looking at all of them takes ten times as long as the query.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PEEK_BYTES = 8_192
"""Read at both ends of a file: several rows each."""
_FIELD = re.compile(rb'"([^"\\]+)"\s*:\s*("|[^\s,}]+)')
_WIDER = ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR")
"""A column of several types gets the last of them."""
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


def columns_of_json_lines(paths: Iterable[Path]) -> dict[str, str]:
    """Column -> DuckDB type, in order of appearance over all files that exist."""
    columns: dict[str, str] = {}
    for path in paths:
        for name, value in _FIELD.findall(_ends(path)):
            kind = _kind(value)
            if kind is not None:
                known = columns.setdefault(name.decode(errors="replace"), kind)
                if known != kind:
                    wider = max(known, kind, key=_WIDER.index)
                    columns[name.decode(errors="replace")] = wider
    return columns


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


def _ends(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(_PEEK_BYTES)
            if len(head) < _PEEK_BYTES:
                return _whole_lines(head)
            file.seek(max(_PEEK_BYTES, path.stat().st_size - _PEEK_BYTES))
            return _whole_lines(head) + b"\n" + _whole_lines(file.read().partition(b"\n")[2])
    except FileNotFoundError:
        return b""


def _whole_lines(chunk: bytes) -> bytes:
    return chunk.rpartition(b"\n")[0]


def _kind(value: bytes) -> str | None:
    if value.startswith(b'"'):
        return "VARCHAR"
    if value in (b"true", b"false"):
        return "BOOLEAN"
    if value == b"null":
        return None
    return "BIGINT" if value.lstrip(b"-").isdigit() else "DOUBLE"
