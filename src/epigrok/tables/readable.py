"""Refuse damaged tables: the store names them and never reads a part of one."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from epigrok.errors import UserError
from epigrok.evaluation.schema import TABLES, TRAINING_TABLES
from epigrok.files import read_regular
from epigrok.records.checking import problem_with_finished
from epigrok.records.directory import PARQUET, RunDirectory
from epigrok.records.manifest import CONFIG, DONE, read_manifest
from epigrok.records.table_checks import parsed_row


def problem_with_table(run: RunDirectory, table: str) -> str | None:
    """Why a table of a run must not be read; None if it may, or if there is none.

    In a finished run its size must be what DONE lists. Otherwise every line must be a JSON object,
    except the last, which may still be incomplete.
    """
    path = run.table(table) if TABLES[table].file else run.path / PARQUET
    if not path.exists():
        is_lost = table in TRAINING_TABLES and _expected_size(run, table)
        return f"{path} is damaged: it is missing" if is_lost else None
    if not path.is_file():
        return f"{path} is not a regular file"
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
    """Whether every line of a table must be readable, because nobody writes to it any more."""
    return _expected_size(run, table) is not None


def damaged_runs(runs: Sequence[RunDirectory]) -> dict[str, str]:
    """Name of each damaged run -> what is wrong with it."""
    # Digests take most of the time, and threads compute them side by side.
    with ThreadPoolExecutor() as pool:
        problems = pool.map(damage, runs)
        return {run.path.name: problem for run, problem in zip(runs, problems) if problem}


def damage(run: RunDirectory) -> str | None:
    """The first problem with any table of a run, digests included, or None."""
    try:
        problem = problem_with_finished(run)
        for table in TABLES:
            problem = problem or problem_with_table(run, table)
    except (UserError, OSError) as error:
        return str(error)
    return problem


def _expected_size(run: RunDirectory, table: str) -> int | None:
    stamps = tuple(map(_stamp, (run.path / DONE, run.path / CONFIG)))
    extent = _extents(run.path, stamps).get(table)
    size = extent.get("bytes") if isinstance(extent, dict) else None
    return size if type(size) is int else None


@lru_cache(maxsize=4096)
def _extents(path: Path, stamps: tuple[object, ...]) -> dict[str, Any]:
    """What DONE says of each table, as DONE and the configuration were at certain times."""
    del stamps
    manifest = read_manifest(path)
    return {} if manifest is None else manifest["tables"]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4096)
def _line_problem(path: Path, size: int, modified: int) -> str | None:
    """The first problem with the lines of a file; cached until the file changes."""
    del size, modified
    *lines, _ = read_regular(path).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if parsed_row(line) is None:
            return f"{path} is damaged: its line {number} is not a JSON object"
    return None
