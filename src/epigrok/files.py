"""Files that are whole or absent whenever a process is killed, and changes that can be revoked.

All changes go through a `Workspace`: a directory in which new files are made before a rename puts
them in their place, and into which removed ones are renamed before they are deleted. Whoever
renames a workspace away has stopped its owner for good: each later change of theirs finds no
workspace and raises `WorkspaceGoneError`, at whatever moment they were interrupted.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from epigrok.errors import UserError

Operation = Literal["create", "write", "sync", "rename", "remove", "append"]


class WorkspaceGoneError(RuntimeError):
    """Somebody revoked the workspace: its owner may change nothing any more."""


def _ignore(operation: Operation, path: Path) -> None:
    del operation, path


announce: Callable[[Operation, Path], None] = _ignore
"""Called before every change of a file, so that tests can interrupt each of them."""


class Workspace:
    """The directory through which one process changes files beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _change("create", path)
        path.mkdir()

    def write_file(self, path: Path, content: str | bytes) -> None:
        """Write `path` so that a reader sees the old content or the new, never a part."""
        data = content.encode() if isinstance(content, str) else content
        self.write_by(path, lambda unfinished: _write(unfinished, data))

    def write_json(self, path: Path, values: Any) -> None:
        """Write one JSON document, whole or not at all."""
        self.write_file(path, json.dumps(values, indent=2, allow_nan=False) + "\n")

    def write_by(self, path: Path, fill: Callable[[Path], None]) -> None:
        """Write `path` by letting `fill` write a file that then takes its name."""
        unfinished = self._unique(path)
        try:
            with self._present():
                fill(unfinished)
                _flush_to_disk(unfinished)
            self._rename(unfinished, path)
        except BaseException:
            # Half a file on a full disk is in the way of everything else.
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        _flush_to_disk(path.parent)

    def write_directory(self, path: Path, fill: Callable[[Path], None]) -> None:
        """Create or replace `path` by letting `fill` write into a directory that takes its name."""
        unfinished = self._unique(path)
        try:
            with self._present():
                _change("create", unfinished)
                unfinished.mkdir()
                fill(unfinished)
                for file in sorted(unfinished.iterdir()):
                    _flush_to_disk(file)
            if path.exists():
                self.remove(path)
            self._rename(unfinished, path)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        _flush_to_disk(path.parent)

    def move(self, path: Path, target: Path) -> None:
        """Give `path` another name, by way of the workspace."""
        aside = self._unique(path)
        self._rename(path, aside)
        self._rename(aside, target)

    def remove(self, path: Path) -> None:
        """Remove a file or a directory; nothing happens if there is none."""
        trash = self._unique(path)
        try:
            self._rename(path, trash)
        except FileNotFoundError:
            return
        _change("remove", trash)
        if trash.is_dir():
            shutil.rmtree(trash, ignore_errors=True)
        else:
            trash.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the workspace itself."""
        _change("remove", self.path)
        shutil.rmtree(self.path, ignore_errors=True)

    def _unique(self, path: Path) -> Path:
        return self.path / f"{path.name}.{uuid4().hex[:8]}"

    def _rename(self, source: Path, target: Path) -> None:
        _change("rename", target)
        with self._present():
            os.replace(source, target)

    @contextmanager
    def _present(self) -> Iterator[None]:
        """Tell a file that is missing from a workspace that is."""
        try:
            yield
        except FileNotFoundError as error:
            if self.path.exists():
                raise
            raise WorkspaceGoneError(f"{self.path} was taken away") from error


class AppendedFile:
    """A file of JSON lines that one process appends to.

    It is copied when opened, so that whoever had it open before goes on with a file that no longer
    has a name. Rows, bytes and digest are known at any moment without reading it again.
    """

    def __init__(self, workspace: Workspace, path: Path, kept: bytes) -> None:
        self.path = path
        workspace.write_file(path, kept)
        self._file = path.open("ab", buffering=0)
        self._digest = hashlib.blake2b(kept)
        self.num_bytes, self.num_rows = len(kept), kept.count(b"\n")

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append one JSON object a line; they are on disk when this returns."""
        data = "".join(map(json_line, rows)).encode()
        _change("append", self.path)
        written = 0
        while written < len(data):
            written += self._file.write(data[written:]) or 0
        os.fsync(self._file.fileno())
        self._digest.update(data)
        self.num_bytes += len(data)
        self.num_rows += data.count(b"\n")

    def extent(self) -> dict[str, Any]:
        """How much there is, and what: enough to notice any change later."""
        digest = self._digest.hexdigest()
        return {"rows": self.num_rows, "bytes": self.num_bytes, "digest": digest}

    def close(self) -> None:
        """Write nothing more."""
        self._file.close()


@contextmanager
def workspace_in(directory: Path) -> Iterator[Workspace]:
    """A workspace for one change of files in `directory`, where nobody needs to be kept out."""
    workspace = Workspace(directory / f".change-{uuid4().hex}")
    try:
        yield workspace
    finally:
        workspace.close()


def write_file(path: Path, content: str | bytes) -> None:
    """Write `path` so that a reader sees the old content or the new, never a part."""
    with workspace_in(path.parent) as workspace:
        workspace.write_file(path, content)


def write_by(path: Path, fill: Callable[[Path], None]) -> None:
    """Write `path` by letting `fill` write a file that then takes its name."""
    with workspace_in(path.parent) as workspace:
        workspace.write_by(path, fill)


def write_json(path: Path, values: Any) -> None:
    """Write one JSON document, whole or not at all."""
    with workspace_in(path.parent) as workspace:
        workspace.write_json(path, values)


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file; a last line cut short by a kill is left out."""
    return [row for _, row in _whole_lines(path)]


def keep_json_lines(
    path: Path,
    is_kept: Callable[[dict[str, Any]], bool],
    added: Iterable[dict[str, Any]] = (),
    workspace: Workspace | None = None,
) -> None:
    """Drop the rows that `is_kept` refuses and add others, all at once.

    Rows that stay are left as they were, byte for byte.
    """
    with one_at_a_time(path.parent):
        kept = [line for line, row in _whole_lines(path) if is_kept(row)]
        new = [json_line(row) for row in added]
        if path.exists() or new:
            write = write_file if workspace is None else workspace.write_file
            write(path, "".join(kept + new))


@contextmanager
def one_at_a_time(directory: Path) -> Iterator[None]:
    """Keep other processes that read, change and write a file of `directory` waiting.

    Where a file system knows no locks nobody waits, and of two changes at once one may be lost.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make_writable_directory(path: Path) -> None:
    """Create `path` if need be; a place that cannot be written to is the user's mistake."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with workspace_in(path):
            pass
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror}") from error


def digest_of(path: Path) -> str:
    """A digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def json_line(row: dict[str, Any]) -> str:
    """One line of a JSON-lines file."""
    return json.dumps(row, allow_nan=False) + "\n"


def _whole_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines and their objects; the last one is left out if a kill cut it short."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            continue
        try:
            text = line.decode()
            row = json.loads(text)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise UserError(f"{path} is damaged: its line {number} is no JSON object")
        yield text, row


def _write(path: Path, data: bytes) -> None:
    _change("write", path)
    path.write_bytes(data)


def _change(operation: Operation, path: Path) -> None:
    announce(operation, path)


def _flush_to_disk(path: Path) -> None:
    _change("sync", path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
