"""Files that are either whole or absent, whenever the process is killed."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from epigrok.errors import UserError

_UNFINISHED = ".unfinished"


def write_file(path: Path, content: str | bytes) -> None:
    """Write `path` so that a reader sees the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content

    def fill(unfinished: Path) -> None:
        unfinished.write_bytes(data)

    write_by(path, fill)


def write_by(path: Path, fill: Callable[[Path], None]) -> None:
    """Write `path` by letting `fill` write a file that then takes its name."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{_UNFINISHED}")
    try:
        fill(unfinished)
        _flush_to_disk(unfinished)
        unfinished.replace(path)
    except BaseException:
        # Half a file on a full disk is in the way of everything else.
        unfinished.unlink(missing_ok=True)
        raise
    _flush_to_disk(path.parent)


def write_json(path: Path, values: Any) -> None:
    """Write one JSON document, whole or not at all."""
    write_file(path, json.dumps(values, indent=2, allow_nan=False) + "\n")


def write_directory(path: Path, fill: Callable[[Path], None]) -> None:
    """Create `path` by letting `fill` write into a directory that then takes its name."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{_UNFINISHED}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        fill(unfinished)
        for file in unfinished.iterdir():
            _flush_to_disk(file)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(path, ignore_errors=True)
    unfinished.replace(path)
    _flush_to_disk(path.parent)


def remove_unfinished(directory: Path) -> None:
    """Clear away what a killed process left half written."""
    for leftover in directory.glob(f"*{_UNFINISHED}"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def append_json_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Append one JSON object a line; they are on disk when this returns."""
    with path.open("a") as file:
        file.writelines(map(_line, rows))
        file.flush()
        os.fsync(file.fileno())


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file; a last line cut short by a kill is left out."""
    return [row for _, row in _whole_lines(path)]


def keep_json_lines(
    path: Path, is_kept: Callable[[dict[str, Any]], bool], added: Iterable[dict[str, Any]] = ()
) -> None:
    """Drop the rows that `is_kept` refuses and add others, all at once.

    Rows that stay are left as they were, byte for byte.
    """
    with one_at_a_time(path.parent):
        kept = [line for line, row in _whole_lines(path) if is_kept(row)]
        new = [_line(row) for row in added]
        if path.exists() or new:
            write_file(path, "".join(kept + new))


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
        probe = path / f"probe.{os.getpid()}{_UNFINISHED}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror}") from error


def _line(row: dict[str, Any]) -> str:
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


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
