"""Files that are whole or absent whenever a process is killed, and changes that can be revoked.

All changes go through a `Workspace`: a directory in which new files are made before a rename puts
them in their place, and into which removed ones are renamed before they are deleted. To stop a
process for good, another renames its workspace away: from then on each change that the first one
tries finds no workspace and raises `WorkspaceGoneError`.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

Operation = Literal["create", "write", "sync", "rename", "remove", "append"]


class WorkspaceGoneError(RuntimeError):
    """Another process revoked the workspace; its owner may not change anything any more."""


def _ignore(operation: Operation, path: Path) -> None:
    del operation, path


announce: Callable[[Operation, Path], None] = _ignore
"""Called before every change of a file, so that tests can interrupt each of them."""


class Workspace:
    """The directory through which one process changes files beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.make()

    def make(self) -> None:
        """Create the directory, also once more by an owner who still may."""
        change("create", self.path)
        self.path.mkdir()

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
            with _named(path), self._present():
                fill(unfinished)
                _flush_to_disk(unfinished)
            self._rename(unfinished, path)
        except BaseException:
            # On a full disk, half a file would take space from everything else.
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        _flush_to_disk(path.parent)

    def write_directory(self, path: Path, files: Mapping[str, Callable[[Path], object]]) -> None:
        """Create or replace the directory `path`.

        Args:
            path: The directory.
            files: What writes each of its files, by name; in this order.
        """
        unfinished = self._unique(path)
        try:
            with _named(path), self._present():
                change("create", unfinished)
                unfinished.mkdir()
                for name, write in files.items():
                    change("write", unfinished / name)
                    write(unfinished / name)
                    _flush_to_disk(unfinished / name)
            if path.exists():
                self.remove(path)
            self._rename(unfinished, path)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        _flush_to_disk(path.parent)

    def make_directory(self, path: Path) -> None:
        """Create an empty directory; nothing happens if there is one."""
        if not path.exists():
            made = self._unique(path)
            with self._present():
                change("create", made)
                made.mkdir()
            self._rename(made, path)

    def move(self, path: Path, target: Path) -> None:
        """Give `path` another name, through the workspace."""
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
        change("remove", trash)
        if trash.is_dir():
            shutil.rmtree(trash, ignore_errors=True)
        else:
            trash.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the workspace itself."""
        change("remove", self.path)
        shutil.rmtree(self.path, ignore_errors=True)

    def _unique(self, path: Path) -> Path:
        return self.path / f"{path.name}.{uuid4().hex[:8]}"

    def _rename(self, source: Path, target: Path) -> None:
        change("rename", target)
        with self._present():
            os.replace(source, target)

    @contextmanager
    def _present(self) -> Iterator[None]:
        """Tell whether a file is missing or the whole workspace."""
        try:
            yield
        except FileNotFoundError as error:
            if self.path.exists():
                raise
            raise WorkspaceGoneError(f"{self.path} was taken away") from error


class AppendedFile:
    """A file of JSON lines that one process appends to.

    Opening makes a copy, so that a process that had it open before keeps writing to a file without
    a name. Rows, bytes and digest are known at any moment without reading it again.
    """

    def __init__(self, workspace: Workspace, path: Path, kept: bytes) -> None:
        self.path = path

        def fill(unfinished: Path) -> None:
            _write(unfinished, kept)
            # Opened before it gets its name, which may later belong to a successor's file.
            self._file = unfinished.open("ab", buffering=0)

        try:
            workspace.write_by(path, fill)
        except BaseException:
            if hasattr(self, "_file"):
                self._file.close()
            raise
        self._digest = hashlib.blake2b(kept)
        self.num_bytes, self.num_rows = len(kept), kept.count(b"\n")

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append one JSON object a line; they are on disk when this returns."""
        data = "".join(map(json_line, rows)).encode()
        with _named(self.path):
            change("append", self.path)
            written = 0
            while written < len(data):
                written += self._file.write(data[written:]) or 0
            os.fsync(self._file.fileno())
        self._digest.update(data)
        self.num_bytes += len(data)
        self.num_rows += data.count(b"\n")

    def extent(self) -> dict[str, Any]:
        """Rows, bytes and digest: enough to notice any later change."""
        digest = self._digest.hexdigest()
        return {"rows": self.num_rows, "bytes": self.num_bytes, "digest": digest}

    def close(self) -> None:
        """Write nothing more."""
        self._file.close()


def json_line(row: dict[str, Any]) -> str:
    """One line of a JSON-lines file."""
    return json.dumps(row, allow_nan=False) + "\n"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in errors that do not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def _write(path: Path, data: bytes) -> None:
    change("write", path)
    path.write_bytes(data)


def change(operation: Operation, path: Path) -> None:
    """Announce a change of a file; called before each of them."""
    announce(operation, path)


def _flush_to_disk(path: Path) -> None:
    change("sync", path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
