"""Which tables of which runs can be relied on: a damaged one is named, never read in part."""

from functools import lru_cache
from pathlib import Path

from epigrok.errors import UserError
from epigrok.evaluation.schema import TABLES, TRAINING_TABLES
from epigrok.files import read_regular
from epigrok.records.checking import problem_with_finished
from epigrok.records.directory import PARQUET, RunDirectory
from epigrok.records.manifest import read_manifest
from epigrok.records.table_checks import parsed_row


def problem_with_table(run: RunDirectory, table: str) -> str | None:
    """Why a table of a run cannot be read as it is; None if it can, or if there is none.

    In a finished run its size is compared with what DONE says. Elsewhere every line must be a JSON
    object, but for the last, which may be cut short while somebody writes it.
    """
    path = run.table(table) if TABLES[table].file else run.path / PARQUET
    if not path.exists():
        is_lost = table in TRAINING_TABLES and _expected_size(run, table)
        return f"{path} is damaged: it is missing" if is_lost else None
    if not path.is_file():
        return f"{path} is no regular file"
    if not TABLES[table].file:
        return None
    size = path.stat().st_size
    expected = _expected_size(run, table)
    if expected is None:
        return _line_problem(path, size, path.stat().st_mtime_ns)
    if size != expected:
        return f"{path} is damaged: it has {size} bytes, and DONE says {expected}"
    return None


def is_strict(run: RunDirectory, table: str) -> bool:
    """Whether no line of a table may be left out: nobody writes to it any more."""
    return _expected_size(run, table) is not None


def damage(run: RunDirectory) -> str | None:
    """The first thing wrong with any table of a run, digests included; None if nothing is."""
    try:
        problem = problem_with_finished(run)
        for table in TABLES:
            problem = problem or problem_with_table(run, table)
    except (UserError, OSError) as error:
        return str(error)
    return problem


def _expected_size(run: RunDirectory, table: str) -> int | None:
    manifest = read_manifest(run.path)
    extent = manifest["tables"].get(table) if manifest is not None else None
    size = extent.get("bytes") if isinstance(extent, dict) else None
    return size if type(size) is int else None


@lru_cache(maxsize=4096)
def _line_problem(path: Path, size: int, modified: int) -> str | None:
    """What is wrong with the lines of a file, as it was at a certain time."""
    del size, modified
    *lines, _ = read_regular(path).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if parsed_row(line) is None:
            return f"{path} is damaged: its line {number} is no JSON object"
    return None
