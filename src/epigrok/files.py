"""Reading and writing single files, whole or not at all; tables of JSON lines."""

import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from epigrok.errors import UserError
from epigrok.workspace import Workspace, json_line

longest_wait = 10.0
"""Seconds that a change waits for others of the same directory; reading and writing takes few."""


@contextmanager
def workspace_in(directory: Path) -> Iterator[Workspace]:
    """A workspace for one change of files in `directory` that need no lease."""
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
    """Make other processes that read, change and write a file of `directory` wait.

    On a file system without locks nobody waits, and nobody waits longer than `longest_wait` for a
    process that hangs; then one of two simultaneous changes may be lost.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    deadline = time.monotonic() + longest_wait
    try:
        while not _locked(descriptor) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Lock a directory, unless somebody else has; also true where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def make_writable_directory(path: Path) -> None:
    """Create `path` if it is missing; refuse a place that cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with workspace_in(path):
            pass
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror}") from error


def own_path(directory: Path, name: str) -> Path:
    """A file or folder to write to in `directory`; a link out of it and a pipe are refused."""
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        raise UserError(f"{path} leads out of {directory}, to {path.resolve()}; remove the link")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path} is neither a file nor a folder; remove it")
    return path


def read_regular(path: Path) -> bytes:
    """The content of a file; refuses pipes and devices, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} is not a regular file")
    with open(descriptor, "rb") as file:
        return file.read()


def parse_json(content: str | bytes, **hooks: Any) -> Any:
    """The document that a file of unknown origin holds; ValueError if it holds none.

    Args:
        content: The content of the file.
        hooks: Passed on to `json.loads`.
    """
    try:
        return json.loads(content, **hooks)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path, **hooks: Any) -> Any:
    """The document that a regular file holds; ValueError if it holds none."""
    return parse_json(read_regular(path), **hooks)


def digest_of(path: Path) -> str:
    """A digest of a file's content."""
    if not path.is_file() and path.exists():
        raise UserError(f"{path} is not a regular file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _whole_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines and their objects; the last one is left out if a kill cut it short."""
    if not path.exists():
        return
    for number, line in enumerate(read_regular(path).splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            continue
        try:
            text = line.decode()
            row = parse_json(text)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise UserError(f"{path} is damaged: its line {number} is not a JSON object")
        yield text, row
