"""Whether a run directory holds what it should: every file, every row, every digest. No torch."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epigrok.checkpoint_files import (
    DIGESTS,
    EXTENTS,
    RESUME,
    checkpoint_path,
    checkpoint_steps,
    problem_with_checkpoint,
    steps_with,
)
from epigrok.columns import ColumnType
from epigrok.errors import UserError
from epigrok.evaluation.schema import TABLES, TRAINING_TABLES
from epigrok.files import digest_of, read_regular
from epigrok.records.directory import CONFIG, PARQUET, WORLD, RunDirectory, run_directories
from epigrok.records.manifest import DESCRIPTION, DONE, read_manifest
from epigrok.records.table_checks import extent_problem, row_problem, table_content

RESTORE = "restore it from a copy, or remove DONE and train the run again with --start-over"
START_OVER = "restore it from a copy, or train the run again with --start-over"
EVALUATE = "remove what is damaged and evaluate the run again"
RESUMES = "nothing is lost: training goes on from another checkpoint and moves this one aside"
REWRITTEN = "nothing is lost: it is written anew when the run goes on"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a run."""

    file: Path
    problem: str
    remedy: str
    """Whether and how it can be repaired."""

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}; {self.remedy}"


def check(directory: Path) -> dict[Path, list[Finding]]:
    """What is wrong with each run of a sweep, or with the one run that `directory` is."""
    runs = run_directories(directory)
    if not runs:
        raise UserError(f"there are no runs in {directory}")
    return {run.path: check_run(run) for run in runs}


def check_run(run: RunDirectory) -> list[Finding]:
    """Everything that is wrong with one run; a file that cannot be read is one of them."""
    found: list[Finding] = []
    for part in (_identity, _records, _tables, _checkpoints, _files):
        try:
            found += part(run)
        except (OSError, UserError) as error:
            file = getattr(error, "filename", None) or run.path
            found.append(Finding(Path(file), f"it cannot be read: {error}", "try again"))
    return found


def problem_with_finished(run: RunDirectory, table: str | None = None) -> str | None:
    """The first way in which the tables of a finished run differ from what DONE says, if any.

    Args:
        run: A run; one that is not finished has no such problem.
        table: Compare digests of this table; of all if None.
    """
    manifest = read_manifest(run.path)
    if manifest is None:
        return None
    for name, extent in manifest["tables"].items():
        if name not in TRAINING_TABLES or table not in (None, name):
            continue
        problem = extent_problem(table_content(run.table(name)) or b"", extent, is_whole=True)
        if problem is not None:
            return f"{run.table(name)} is damaged: {problem}"
    if table is None or not TABLES[table].file:
        parquet, digest = run.path / PARQUET, manifest["files"].get(PARQUET)
        if digest is not None and (not parquet.exists() or digest_of(parquet) != digest):
            return f"{parquet} is damaged: it is not as it was when the run was finished"
    return None


def _identity(run: RunDirectory) -> Iterator[Finding]:
    """Format, description, configuration and DONE."""
    try:
        run.description()
    except UserError as error:
        yield Finding(run.path / DESCRIPTION, str(error), "restore it from a copy")
        return
    try:
        run.config()
    except UserError as error:
        if not run.description().missing_plugins():
            yield Finding(run.path / CONFIG, str(error), "restore it from a copy")
    if (run.path / DONE).exists() and read_manifest(run.path) is None:
        remedy = "remove it; training then goes on from the newest checkpoint"
        if not any(steps_with(run.checkpoints, RESUME)):
            remedy = START_OVER
        yield Finding(run.path / DONE, "it does not belong to this run as it is", remedy)


def _records(run: RunDirectory) -> Iterator[Finding]:
    """Status and provenance, which nothing depends on."""
    for name in ("status.json", "provenance.json"):
        path = run.path / name
        if not path.exists():
            continue
        try:
            is_object = isinstance(json.loads(read_regular(path)), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            yield Finding(path, "it is no JSON object", REWRITTEN)


def _tables(run: RunDirectory) -> Iterator[Finding]:
    """Rows, columns, types and keys; and that none is missing."""
    manifest, extents = read_manifest(run.path), _newest_extents(run)
    is_done = manifest is not None
    known = manifest["tables"] if manifest is not None else extents
    facts = _facts(run)
    for name, table in TABLES.items():
        if not table.file:
            continue
        path, is_training = run.table(name), name in TRAINING_TABLES
        content = table_content(path)
        remedy = (RESTORE if is_done else START_OVER) if is_training else EVALUATE
        extent = known.get(name) if is_training else None
        if isinstance(extent, Mapping):
            if content is None and extent.get("rows") != 0:
                yield Finding(path, f"it is missing, with {extent.get('rows')} rows", remedy)
            problem = None if content is None else extent_problem(content, extent, is_done)
            if problem is not None:
                yield Finding(path, problem, remedy)
        if content is not None:
            problem = row_problem(table, facts, content, may_be_cut=not is_done and is_training)
            if problem is not None:
                yield Finding(path, problem, remedy)


def _facts(run: RunDirectory) -> dict[str, ColumnType]:
    try:
        posteriors = run.description().posteriors
    except UserError:
        return {}
    return {fact.name: fact.type for posterior in posteriors for fact in posterior.facts}


def _checkpoints(run: RunDirectory) -> Iterator[Finding]:
    """Digests of every file that a checkpoint still has."""
    resumable = sorted(steps_with(run.checkpoints, RESUME))
    for step in sorted(steps_with(run.checkpoints)):
        path = checkpoint_path(run.checkpoints, step)
        files = sorted(file.name for file in path.iterdir() if file.name != DIGESTS)
        problem = problem_with_checkpoint(path, None if step in resumable else files)
        if problem is not None:
            others = set(resumable) - {step}
            yield Finding(path, problem, RESUMES if others or run.is_done else START_OVER)
    if not run.is_done and not resumable and _has_steps(run):
        problem = "the run is not finished and there is nothing to resume it from"
        yield Finding(run.checkpoints, problem, START_OVER)
    if run.is_done and not checkpoint_steps(run.checkpoints) and run.checkpoints.exists():
        yield Finding(run.checkpoints, "no weights are left", RESTORE)


def _has_steps(run: RunDirectory) -> bool:
    """Whether any table knows of a step after the first."""
    return any(
        (run.table(name).exists() and run.table(name).stat().st_size > 0) for name in ("training",)
    )


def _files(run: RunDirectory) -> Iterator[Finding]:
    """World, Parquet table and small files: digests."""
    manifest = read_manifest(run.path)
    extents = _newest_extents(run)
    if manifest is not None:
        expected = {run.path / name: digest for name, digest in manifest["files"].items()}
    else:
        shards = extents.get("positions", {})
        expected = {run.path / "positions" / name: digest for name, digest in shards.items()}
        if WORLD in extents:
            expected[run.path / WORLD] = extents[WORLD]
    for path, digest in expected.items():
        if path.parent not in (run.path, run.path / "positions"):
            continue
        if not path.exists():
            yield Finding(path, "it is missing", RESTORE if manifest else START_OVER)
        elif digest_of(path) != digest:
            problem = "it is not as it was written: the digest differs"
            yield Finding(path, problem, RESTORE if manifest else START_OVER)


def _newest_extents(run: RunDirectory) -> dict[str, Any]:
    """How far each table was written at the newest intact checkpoint to resume from."""
    for step in sorted(steps_with(run.checkpoints, RESUME), reverse=True):
        path = checkpoint_path(run.checkpoints, step)
        if problem_with_checkpoint(path, (EXTENTS,)) is None:
            values = json.loads((path / EXTENTS).read_bytes())
            return values if isinstance(values, dict) else {}
    return {}
