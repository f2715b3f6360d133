"""Files that are either whole or absent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from damaged_files import DEEP
from table_files import append_rows

from epigrok import files
from epigrok.errors import UserError
from epigrok.files import (
    digest_of,
    keep_json_lines,
    make_writable_directory,
    one_at_a_time,
    own_path,
    parse_json,
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
        with pytest.raises(
            UserError, match=r"damaged.jsonl is damaged: its line 3 is not a JSON object"
        ):
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
    assert own_path(inside, "report") == inside / "report"
    (inside / "report").symlink_to(outside)
    with pytest.raises(UserError, match=r"leads out of .*; remove the link"):
        own_path(inside, "report")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_regular, read_json_lines, digest_of):
        with pytest.raises(UserError, match="pipe is not a regular file"):
            read(tmp_path / "pipe")


def test_a_process_that_hangs_with_the_lock_holds_nobody_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "longest_wait", 0.05)
    with one_at_a_time(tmp_path):
        keep_json_lines(tmp_path / "rows.jsonl", lambda row: True, [{"step": 1}])
    assert read_json_lines(tmp_path / "rows.jsonl") == [{"step": 1}]


def test_a_folder_is_no_regular_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a regular file"):
        read_regular(tmp_path)


def test_what_is_no_document_is_one_kind_of_error() -> None:
    assert parse_json(b'{"step": 1}') == {"step": 1}
    for content in ("", "{", DEEP, "1" * 10_000):
        with pytest.raises(ValueError, match=r"nested too deeply|Expecting|integer string"):
            parse_json(content)
