"""Changes that are whole or absent, and that can be revoked."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epigrok.workspace import AppendedFile, Workspace, WorkspaceGoneError

FILES: dict[str, Callable[[Path], object]] = {"a": lambda path: path.write_text("1")}


def test_a_directory_appears_whole_or_not_at_all(tmp_path: Path, workspace: Workspace) -> None:
    def fail(path: Path) -> None:
        raise OSError("disk full")

    workspace.write_directory(tmp_path / "made", FILES)
    with pytest.raises(OSError, match="disk full"):
        workspace.write_directory(tmp_path / "never", FILES | {"b": fail})
    assert [item.name for item in tmp_path.iterdir()] == ["made"]
    assert list(workspace.path.iterdir()) == []


def test_a_directory_is_made_once(tmp_path: Path, workspace: Workspace) -> None:
    for _ in range(2):
        workspace.make_directory(tmp_path / "made")
        (tmp_path / "made" / "kept").touch()
    assert (tmp_path / "made" / "kept").exists()
    assert list(workspace.path.iterdir()) == []


def test_what_is_moved_or_removed_is_gone_from_its_place(
    tmp_path: Path, workspace: Workspace
) -> None:
    for name in ("one", "two"):
        workspace.write_directory(tmp_path / name, FILES)
    workspace.write_file(tmp_path / "file", "x")
    workspace.move(tmp_path / "one", tmp_path / "three")
    for name in ("two", "file", "nothing"):
        workspace.remove(tmp_path / name)
    assert [item.name for item in tmp_path.iterdir()] == ["three"]
    assert list(workspace.path.iterdir()) == []


CHANGES: dict[str, Callable[[Workspace, Path], None]] = {
    "write_file": lambda workspace, path: workspace.write_file(path / "file", "new"),
    "write_json": lambda workspace, path: workspace.write_json(path / "file", {}),
    "write_directory": lambda workspace, path: workspace.write_directory(path / "folder", FILES),
    "make_directory": lambda workspace, path: workspace.make_directory(path / "folder"),
    "remove": lambda workspace, path: workspace.remove(path / "file"),
    "move": lambda workspace, path: workspace.move(path / "file", path / "moved"),
    "append": lambda workspace, path: AppendedFile(workspace, path / "file", b"").append([{}]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_who_lost_the_workspace_changes_nothing(
    name: str, tmp_path: Path, workspace: Workspace
) -> None:
    (tmp_path / "file").write_text("old")
    shutil.rmtree(workspace.path)
    with pytest.raises(WorkspaceGoneError, match="was taken away"):
        CHANGES[name](workspace, tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_an_appended_file_knows_its_extent(tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "rows.jsonl"
    file = AppendedFile(workspace, path, b"")
    file.append([{"a": 1}, {"a": 2}])
    extent = file.extent()
    assert (extent["rows"], extent["bytes"]) == (2, path.stat().st_size)
    again = AppendedFile(workspace, path, path.read_bytes())
    assert again.extent() == extent
    again.append([{"a": 3}])
    assert again.extent() != extent
    file.close()
    again.close()
    assert path.read_text() == '{"a": 1}\n{"a": 2}\n{"a": 3}\n'


def test_who_is_stopped_before_opening_never_appends_to_a_successors_file(
    tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    other = Workspace(tmp_path / "other")
    successors: list[AppendedFile] = []

    def take_over(operation: str, where: Path) -> None:
        # The last thing before the constructor returns: the file already has its name.
        if (operation, where) == ("sync", tmp_path) and not successors:
            successors.append(None)  # type: ignore[arg-type]
            successors[0] = AppendedFile(other, path, b"")

    monkeypatch.setattr("epigrok.workspace.announce", take_over)
    hung = AppendedFile(workspace, path, b"")
    hung.append([{"by": "the one that hung"}])
    successors[0].append([{"by": "its successor"}])
    hung.close()
    successors[0].close()
    assert path.read_text() == '{"by": "its successor"}\n'


@pytest.mark.parametrize("operation", ["write", "append"])
def test_a_full_disk_names_the_file(
    operation: str, tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    file = AppendedFile(workspace, path, b"")

    def full(announced: str, where: Path) -> None:
        if announced == operation:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("epigrok.workspace.announce", full)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        file.append([{"a": 1}]) if operation == "append" else workspace.write_file(path, "")
    file.close()
