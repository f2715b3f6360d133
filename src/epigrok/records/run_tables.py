"""The tables that training writes, opened by the one process that holds the run.

Every checkpoint keeps the extent of each table at that moment: rows, bytes and a digest. Resuming
checks that part of the table and cuts off the rest, so that each row is there once.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from epigrok.errors import UserError
from epigrok.evaluation.schema import TRAINING_TABLES
from epigrok.files import digest_of, read_json_lines
from epigrok.records.directory import WORLD, RunDirectory
from epigrok.records.position_shards import position_shards, shard_path
from epigrok.records.table_checks import extent_problem, table_content
from epigrok.workspace import AppendedFile, Workspace

Extents = Mapping[str, Any]
_SHARDS = "positions"
_NOTHING = {"rows": 0, "bytes": 0, "digest": blake2b(b"").hexdigest()}


class RunTables:
    """Tables that rows are appended to."""

    def __init__(self, run: RunDirectory, workspace: Workspace, extents: Extents) -> None:
        self._run, self._workspace = run, workspace
        shards = extents.get(_SHARDS, {})
        if not isinstance(shards, dict):
            raise _damaged(run, _SHARDS)
        self._shards: dict[str, str] = dict(shards)
        self._world = digest_of(run.path / WORLD)
        if extents.get(WORLD, self._world) != self._world:
            raise _damaged(run, WORLD)
        kept = {name: _kept(run, name, extents.get(name, _NOTHING)) for name in TRAINING_TABLES}
        self._require_shards()
        for shard in position_shards(run.path):
            if shard.name not in self._shards:
                workspace.remove(shard)
        self._files: dict[str, AppendedFile] = {}
        try:
            for name, content in kept.items():
                self._files[name] = AppendedFile(workspace, run.table(name), content)
        except BaseException:
            self.close()
            raise

    def append(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Append rows; they are on disk when this returns."""
        self._files[table].append(rows)

    def write_positions(self, step: int, content: bytes) -> None:
        """Write the metrics by context length of one evaluation."""
        path = shard_path(self._run.path, step)
        self._workspace.make_directory(path.parent)
        self._workspace.write_file(path, content)
        self._shards[path.name] = blake2b(content).hexdigest()

    def extents(self) -> dict[str, Any]:
        """How far each table has been written."""
        tables = {name: file.extent() for name, file in self._files.items()}
        return {**tables, _SHARDS: dict(self._shards), WORLD: self._world}

    def require_unchanged(self) -> None:
        """Refuse to finish a run whose files somebody removed or changed meanwhile."""
        for file in self._files.values():
            problem = extent_problem(table_content(file.path) or b"", file.extent(), is_whole=True)
            if problem is not None:
                raise _damaged(self._run, file.path.name)
        world = self._run.path / WORLD
        if not world.exists() or digest_of(world) != self._world:
            raise _damaged(self._run, WORLD)
        self._require_shards()

    def _require_shards(self) -> None:
        for name, digest in self._shards.items():
            shard = self._run.path / _SHARDS / name
            if not shard.exists() or digest_of(shard) != digest:
                raise _damaged(self._run, f"{_SHARDS}/{name}")

    def close(self) -> None:
        """Write nothing more."""
        for file in self._files.values():
            file.close()


def require_nothing_to_lose(run: RunDirectory) -> None:
    """Refuse to start over a run that has rows but no checkpoint to resume from."""
    rows = [row for name in TRAINING_TABLES for row in read_json_lines(run.table(name))]
    last = max((row["step"] for row in rows if isinstance(row.get("step"), int)), default=0)
    if last > 0:
        raise UserError(
            f"{run.path} has {len(rows)} rows up to step {last}, but no checkpoint to resume from "
            "(resume.pt is missing) and no valid DONE; look at it with `epigrok check`, or train "
            "it again from step 0, losing those rows, with --start-over"
        )


def _kept(run: RunDirectory, name: str, extent: Any) -> bytes:
    """The part of a table that was written before the checkpoint."""
    path = run.table(name)
    content = table_content(path) or b""
    if not isinstance(extent, dict) or extent_problem(content, extent, is_whole=False):
        raise _damaged(run, path.name)
    return content[: extent["bytes"]]


def _damaged(run: RunDirectory, file: str) -> UserError:
    return UserError(
        f"{run.path / file} changed after it was written; look at the run with `epigrok check`, or "
        "train it again from step 0 with --start-over"
    )
