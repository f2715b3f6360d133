"""`epigrok compare`: counts, intervals, and when it refuses to conclude."""

import shutil
from pathlib import Path

import pytest
from made_runs import make_sweep
from table_files import write_table

from epigrok.cli import main
from epigrok.workspace import Workspace


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["compare", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def sweep(directory: Path, num_generalised: int, number: int, first_seed: int = 0) -> Path:
    solved = [500] * num_generalised + [None] * (number - num_generalised)
    make_sweep(directory, solved, [None] * number, first_seed=first_seed)
    return directory


def test_one_setting_has_counts_and_intervals_of_all_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = compared(capsys, sweep(tmp_path / "a", 6, 8))
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in text.splitlines()
        if " of 8" in line
    ]
    # Wilson's intervals of 6, 2 and 0 of 8.
    assert rows == [
        ["classic", "generalised", "6 of 8", "0.75 (0.41 to 0.93)"],
        ["lost", "0 of 8", "0.00 (0.00 to 0.32)"],
        ["memorised", "2 of 8", "0.25 (0.07 to 0.59)"],
        ["between", "0 of 8", "0.00 (0.00 to 0.32)"],
        ["unfitted", "0 of 8", "0.00 (0.00 to 0.32)"],
    ]
    assert "less" not in text


def test_eight_runs_of_each_allow_a_conclusion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = sweep(tmp_path / "a", 8, 8), sweep(tmp_path / "b", 1, 8, first_seed=8)
    text = compared(capsys, one, other)
    # 0.875 - sqrt((1 - 0.6756)^2 + (0.4709 - 0.125)^2), and 0.875 + (0.125 - 0.0224).
    assert "a: classic less b: classic: 0.88 (0.40 to 0.98)" in text
    assert "a: classic generalises more often than b: classic." in text
    assert "b: classic less a: classic: −0.88" in compared(capsys, other, one)


def test_equal_shares_may_be_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = sweep(tmp_path / "a", 5, 8), sweep(tmp_path / "b", 4, 8, first_seed=8)
    assert "The two may be equal" in compared(capsys, one, other)


def test_few_runs_conclude_nothing_however_clear_they_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = sweep(tmp_path / "a", 7, 7), sweep(tmp_path / "b", 0, 8, first_seed=8)
    text = compared(capsys, one, other)
    assert "No conclusion: that takes at least 8 finished runs of each, and there are 7" in text
    assert "more often" not in text


def test_runs_that_did_not_finish_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workspace: Workspace
) -> None:
    assert "not finished" not in compared(capsys, sweep(tmp_path / "a", 8, 8))
    first, second = make_sweep(tmp_path / "a", [500] * 8, [None] * 8)[:2]
    for run in (first, second):
        (run.path / "DONE").unlink()
    first.write_status(workspace, state="failed")
    text = compared(capsys, tmp_path / "a")
    assert "a: 2 of 8 runs are not finished, of which 1 failed; they do not count" in text


def test_a_side_without_finished_runs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = sweep(tmp_path / "a", 8, 8), tmp_path / "b"
    for run in make_sweep(other, [500] * 8, [None] * 8, overrides={"batch_size": 100}):
        (run.path / "DONE").unlink()
    assert main(["compare", str(one), str(other)]) == 2
    assert f"in {other}, no finished run" in capsys.readouterr().err


def test_settings_of_one_sweep_are_chosen_with_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for k, size in enumerate((100, 200, 300)):
        solved = [500] * (8 - 4 * (k == 1))
        solved += [None] * (8 - len(solved))
        make_sweep(tmp_path, solved, [None] * 8, overrides={"batch_size": size})
    text = compared(capsys, tmp_path)
    assert "3 settings; to compare two of them, choose them with --where" in text
    text = compared(capsys, tmp_path, "--where", "batch_size=100,200")
    assert "classic, batch size = 100 generalises more often than classic, batch size = 200" in text


def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = sweep(tmp_path / "a", 8, 8)
    assert main(["compare", str(one), str(one)]) == 2
    assert "both settings hold run" in capsys.readouterr().err
    assert main(["compare", str(one), "--split", "ood_val"]) == 2
    assert "no finished run tracked 'point' and has the split 'ood_val'" in capsys.readouterr().err
    assert main(["compare", "a", "b", "c"]) == 2
    assert "one or two directories are needed, got 3" in capsys.readouterr().err


def test_runs_are_told_apart_by_what_they_are_not_by_their_directories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        (run,) = make_sweep(tmp_path / name, [500], [None], first_seed=seed)
        run.path.rename(run.path.with_name("seed0"))
    assert "a: classic less b: classic" in compared(capsys, tmp_path / "a", tmp_path / "b")
    shutil.copytree(tmp_path / "a" / "seed0", tmp_path / "c" / "another-name")
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "c")]) == 2
    assert "both settings hold run seed0; there is nothing to compare" in capsys.readouterr().err


def test_finished_runs_that_do_not_count_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = make_sweep(tmp_path / "a", [500] * 5, [None] * 5)
    (first.path / "config.json").write_text("{")
    rows = [row for row in second.rows("metrics") if row["posterior"] != "point"]
    write_table(second, "metrics", rows)
    second.mark_done()
    text = compared(capsys, tmp_path / "a")
    assert "3 of 3" in text
    assert "a: 1 of 5 runs cannot be read, and do not count; `epigrok check` says why" in text
    assert "a: 1 of 5 runs lack the split or 'point', and do not count" in text
    assert "not finished" not in text


def test_a_directory_without_a_name_of_its_own_is_labelled_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(tmp_path / "a", 1, 1)
    sweep(tmp_path / "b", 1, 1, first_seed=1)
    sweep(tmp_path / "more" / "a", 1, 1, first_seed=1)
    monkeypatch.chdir(tmp_path / "a")
    assert "a: classic less b: classic" in compared(capsys, ".", "../b")
    # Two of one name go by the paths that were given.
    assert ".: classic less ../more/a: classic" in compared(capsys, ".", "../more/a")
