"""Files that are either whole or absent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from table_files import append_rows

from epigrok.errors import UserError
from epigrok.files import (
    digest_of,
    keep_json_lines,
    make_writable_directory,
    own_folder,
    read_json_lines,
    read_regular,
    write_by,
    write_file,
    write_json,
)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    write_file(path, "new")
    assert path.read_text() == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["file.json"]


def test_a_write_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(unfinished: Path) -> None:
        unfinished.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_by(tmp_path / "file", fail)
    assert not list(tmp_path.iterdir())


def test_rows_added_by_several_processes_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    code = (
        "import sys; from pathlib import Path; from epigrok.files import keep_json_lines\n"
        "for k in range(40):\n"
        "    keep_json_lines(Path(sys.argv[1]), lambda row: True, [{'by': sys.argv[2], 'k': k}])"
    )
    command = [sys.executable, "-c", code, str(path)]
    for writer in [subprocess.Popen([*command, name]) for name in "abc"]:
        assert writer.wait() == 0
    assert len(read_json_lines(path)) == 120


def test_a_line_cut_short_is_left_out_and_the_others_stay_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_rows(path, [{"step": 1, "x": 0.1}, {"step": 2, "x": 1e-17}])
    whole = path.read_text()
    with path.open("a") as file:
        file.write('{"step": 3, "x"')
    assert [row["step"] for row in read_json_lines(path)] == [1, 2]
    for damage in (b"{garbage\n", b"3\n", b"\xff\xfe\n"):
        damaged = tmp_path / "damaged.jsonl"
        damaged.write_bytes(whole.encode() + damage)
        with pytest.raises(UserError, match=r"damaged.jsonl is damaged: its line 3 is no JSON"):
            read_json_lines(damaged)
    keep_json_lines(path, lambda row: row["step"] <= 5)
    assert path.read_text() == whole
    keep_json_lines(path, lambda row: row["step"] <= 1)
    assert path.read_text() == whole.splitlines(keepends=True)[0]


def test_unwritable_places_are_a_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        make_writable_directory(tmp_path / "file" / "below")


def test_a_folder_of_results_may_not_lead_elsewhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    assert own_folder(inside, "report") == inside / "report"
    (inside / "report").symlink_to(outside)
    with pytest.raises(UserError, match=r"leads out of .*; remove the link"):
        own_folder(inside, "report")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_regular, read_json_lines, digest_of):
        with pytest.raises(UserError, match="pipe is no regular file"):
            read(tmp_path / "pipe")
