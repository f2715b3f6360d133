"""The tables that a query names, according to DuckDB's own parser."""

import json
from collections.abc import Iterator
from typing import Any


def tables_named_in(query: str, connection: Any) -> set[str] | None:
    """Names of tables, in lower case; None if the parser cannot tell."""
    ((text,),) = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(text)
    return None if parsed["error"] else set(_table_names(parsed))


def _table_names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield str(node["table_name"]).lower()
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _table_names(child)
