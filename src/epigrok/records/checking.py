"""Check that a run directory is complete and undamaged: files, rows, digests. No torch."""

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
from epigrok.files import digest_of, read_json
from epigrok.records.directory import (
    CONFIG,
    PARQUET,
    STATUS,
    WORLD,
    RunDirectory,
    run_directories,
)
from epigrok.records.foreign import is_step
from epigrok.records.manifest import CHECKPOINTS, DESCRIPTION, DONE, read_manifest
from epigrok.records.table_checks import extent_problem, row_problem, table_content

RESTORE = "restore it from a copy, or remove DONE and train the run again with --start-over"
GO_ON = "restore it from a copy, or remove DONE: training then goes on from a checkpoint"
START_OVER = "restore it from a copy, or train the run again with --start-over"
EVALUATE = "remove what is damaged and evaluate the run again"
RESUMES = "nothing is lost: training resumes from another checkpoint and moves this one aside"
REWRITTEN = "nothing is lost: the next process that works on the run writes it again"


@dataclass(frozen=True)
class Finding:
    """A problem with a run."""

    file: Path
    problem: str
    remedy: str
    """How to repair it, or why there is no need."""

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}; {self.remedy}"


def check(directory: Path) -> dict[Path, list[Finding]]:
    """The problems of each run in `directory`, which is a sweep or a single run."""
    runs = run_directories(directory)
    if not runs:
        raise UserError(f"there are no runs in {directory}")
    return {run.path: check_run(run) for run in runs}


def check_run(run: RunDirectory) -> list[Finding]:
    """All problems of one run; a file that cannot be read counts as one."""
    found: list[Finding] = []
    for part in (_identity, _records, _tables, _checkpoints, _files):
        try:
            found += part(run)
        except (OSError, UserError) as error:
            file = getattr(error, "filename", None) or run.path
            found.append(Finding(Path(file), f"it cannot be read: {error}", "try again"))
    return found


def problem_with_finished(run: RunDirectory, table: str | None = None) -> str | None:
    """How the tables of a finished run differ from what DONE lists: the first difference, or None.

    Args:
        run: A run; None is returned if it is not finished.
        table: The table to compare; all of them if None.
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
            return f"{parquet} is damaged: it changed after the run was finished"
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
        remedy = "remove it; training then resumes from the newest checkpoint"
        if not any(steps_with(run.checkpoints, RESUME)):
            remedy = START_OVER
        yield Finding(run.path / DONE, "it does not match this run's configuration", remedy)


def _records(run: RunDirectory) -> Iterator[Finding]:
    """Status and provenance: no result depends on them."""
    for name in (STATUS, "provenance.json"):
        path = run.path / name
        if not path.exists():
            continue
        try:
            is_object = isinstance(read_json(path), dict)
        except ValueError:
            is_object = False
        if not is_object:
            yield Finding(path, "it is not a JSON object", REWRITTEN)


def _tables(run: RunDirectory) -> Iterator[Finding]:
    """Rows, columns, types and keys of every table, and missing tables."""
    manifest, extents = read_manifest(run.path), _newest_extents(run)
    is_done = manifest is not None
    known = manifest["tables"] if manifest is not None else extents
    facts = _facts(run)
    for name, table in TABLES.items():
        if not table.file:
            continue
        path, is_training = run.table(name), name in TRAINING_TABLES
        content = table_content(path)
        remedy = _remedy(run, is_done) if is_training else EVALUATE
        extent = known.get(name) if is_training else None
        if isinstance(extent, Mapping):
            if content is None and extent.get("rows") != 0:
                missing = f"it is missing; it should have {extent.get('rows')} rows"
                yield Finding(path, missing, remedy)
            problem = None if content is None else extent_problem(content, extent, is_done)
            if problem is not None:
                yield Finding(path, problem, remedy)
        if content is not None:
            problem = row_problem(table, facts, content, may_be_cut=not is_done and is_training)
            if problem is not None:
                yield Finding(path, problem, remedy)


def _remedy(run: RunDirectory, is_done: bool) -> str:
    """What to do about a damaged table or file of training."""
    if not is_done:
        return START_OVER
    # A finished run has nothing to resume from: then DONE is what is wrong.
    return GO_ON if any(steps_with(run.checkpoints, RESUME)) else RESTORE


def _facts(run: RunDirectory) -> dict[str, ColumnType]:
    try:
        posteriors = run.description().posteriors
    except UserError:
        return {}
    return {fact.name: fact.type for posterior in posteriors for fact in posterior.facts}


def _checkpoints(run: RunDirectory) -> Iterator[Finding]:
    """The digest of every file of every checkpoint."""
    resumable = sorted(steps_with(run.checkpoints, RESUME))
    for step in sorted(steps_with(run.checkpoints)):
        path = checkpoint_path(run.checkpoints, step)
        files = sorted(file.name for file in path.iterdir() if file.name != DIGESTS)
        problem = problem_with_checkpoint(path, None if step in resumable else files)
        if problem is not None:
            others = set(resumable) - {step}
            yield Finding(path, problem, RESUMES if others or run.is_done else START_OVER)
    if not run.is_done and not resumable and _has_steps(run):
        problem = "the run is not finished and has no checkpoint to resume from"
        yield Finding(run.checkpoints, problem, START_OVER)
    steps = checkpoint_steps(run.checkpoints)
    if run.is_done and run.keeps_weights and run.checkpoints.exists() and not steps:
        yield Finding(run.checkpoints, "no weights are left", RESTORE)
    elif missing := _kept_steps(run) - set(steps):
        listed = ", ".join(map(str, sorted(missing)))
        problem = f"the weights of step {listed} are missing"
        yield Finding(run.checkpoints, problem, _remedy(run, is_done=True))


def _kept_steps(run: RunDirectory) -> set[int]:
    """The steps whose weights a finished run kept, where its DONE lists them."""
    steps = (read_manifest(run.path) or {}).get(CHECKPOINTS)
    return {step for step in steps if is_step(step)} if isinstance(steps, list) else set()


def _has_steps(run: RunDirectory) -> bool:
    """Whether the run has taken evaluated steps."""
    training = run.table("training")
    return training.exists() and training.stat().st_size > 0


def _files(run: RunDirectory) -> Iterator[Finding]:
    """The digests of the world, the Parquet table and the shards by context length."""
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
            yield Finding(path, "it is missing", _remedy(run, manifest is not None))
        elif digest_of(path) != digest:
            problem = "it changed after it was written: its digest differs"
            yield Finding(path, problem, _remedy(run, manifest is not None))


def _newest_extents(run: RunDirectory) -> dict[str, Any]:
    """The extents of all tables at the newest intact checkpoint to resume from."""
    for step in sorted(steps_with(run.checkpoints, RESUME), reverse=True):
        path = checkpoint_path(run.checkpoints, step)
        if problem_with_checkpoint(path, (EXTENTS,)) is None:
            extents: dict[str, Any] = read_json(path / EXTENTS)
            return extents
    return {}
