"""Quoting of names, values and paths in SQL."""

import glob
from collections.abc import Iterable


def quoted_name(identifier: str) -> str:
    """A column name, with any characters."""
    return '"' + identifier.replace('"', '""') + '"'


def quoted_text(value: object) -> str:
    """A string literal."""
    return "'" + str(value).replace("'", "''") + "'"


def quoted_path(path: object) -> str:
    """A file to read; its stars, question marks and brackets are not a pattern."""
    return quoted_text(glob.escape(str(path)))


def quoted_paths(paths: Iterable[object]) -> str:
    """A list of files to read."""
    return "[" + ", ".join(map(quoted_path, paths)) + "]"
