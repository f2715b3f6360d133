"""Names, values and paths inside SQL, quoted so that they mean nothing but themselves."""

import glob
from collections.abc import Iterable


def quoted_name(identifier: str) -> str:
    """A column, whatever characters it has."""
    return '"' + identifier.replace('"', '""') + '"'


def quoted_text(value: object) -> str:
    """A string."""
    return "'" + str(value).replace("'", "''") + "'"


def quoted_path(path: object) -> str:
    """A file to read, whose stars, question marks and brackets are no pattern."""
    return quoted_text(glob.escape(str(path)))


def quoted_paths(paths: Iterable[object]) -> str:
    """A list of files to read."""
    return "[" + ", ".join(map(quoted_path, paths)) + "]"
