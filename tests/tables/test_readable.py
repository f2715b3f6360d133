"""A damaged table is named, never read in part."""

import os
from pathlib import Path

import pytest
from made_runs import make_sweep

from epigrok.cli import main
from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.records.status import read_statuses
from epigrok.tables import open_sweep
from epigrok.tables.readable import damage, is_strict, problem_with_table


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDirectory]:
    """Two that are done and one that goes on."""
    runs = make_sweep(tmp_path / "sweep", [500, 600, None], [600, 700, None])
    (runs[2].path / "DONE").unlink()
    return runs


def break_line(run: RunDirectory) -> None:
    """Keep the size: only reading, or the digest, can tell."""
    file = run.table("metrics")
    lines = file.read_text().splitlines(keepends=True)
    lines[3] = "x" + lines[3][1:]
    file.write_text("".join(lines))


def test_intact_tables_have_no_problem(runs: list[RunDirectory]) -> None:
    for run in runs:
        assert problem_with_table(run, "metrics") is None
        assert problem_with_table(run, "final") is None
        assert damage(run) is None
    assert [is_strict(run, "metrics") for run in runs] == [True, True, False]


def test_the_size_of_a_finished_table_is_compared(runs: list[RunDirectory]) -> None:
    size = runs[0].table("metrics").stat().st_size
    os.truncate(runs[0].table("metrics"), 100)
    expected = rf"metrics\.jsonl is damaged: it has 100 bytes, and DONE says {size}; look at the"
    with pytest.raises(UserError, match=expected):
        open_sweep(runs[0].path).sql("from metrics")
    runs[0].table("metrics").unlink()
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged: it is missing"):
        open_sweep(runs[0].path).sql("from metrics")


def test_an_unfinished_table_may_lack_the_end_of_its_last_line_only(
    runs: list[RunDirectory],
) -> None:
    run = runs[2]
    file = run.table("metrics")
    os.truncate(file, file.stat().st_size - 7)
    assert problem_with_table(run, "metrics") is None
    assert len(open_sweep(run.path).sql("from metrics").fetchall()) == 43
    break_line(run)
    with pytest.raises(
        UserError, match=r"metrics\.jsonl is damaged: its line 4 is not a JSON object"
    ):
        open_sweep(run.path).sql("from metrics")


def test_a_broken_line_of_a_finished_run_is_never_left_out(
    runs: list[RunDirectory], capsys: pytest.CaptureFixture[str]
) -> None:
    break_line(runs[0])
    with pytest.raises(Exception, match=r"metrics\.jsonl"):
        open_sweep(runs[0].path).sql("select count(nll) from metrics").fetchall()
    directory = str(runs[0].path.parent)
    for command in (
        ["separation", directory],
        ["tensorboard", directory, "--logdir", f"{directory}/tb"],
    ):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert "metrics.jsonl" in told
        assert len(told.splitlines()) == 1


def test_export_compares_digests_and_writes_nothing(
    runs: list[RunDirectory], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = runs[1].table("metrics")
    file.write_text(file.read_text().replace("0.8", "0.9"))
    out = tmp_path / "all.parquet"
    assert main(["export", str(tmp_path / "sweep"), str(out)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "nothing was written" in told
    assert f"{file} is damaged: its 44 rows changed after they were written" in told
    assert not out.exists()


def test_a_damaged_run_is_left_out_and_named(runs: list[RunDirectory], tmp_path: Path) -> None:
    break_line(runs[0])
    store = open_sweep(tmp_path / "sweep", verified=True)
    name = runs[0].path.name
    assert list(store.left_out) == [name]
    found = store.sql("select distinct run_id from metrics order by all").fetchall()
    assert [row[0] for row in found] == sorted(run.path.name for run in runs[1:])
    with pytest.raises(UserError, match=r"is damaged: .*; look at it with `epigrok check`"):
        open_sweep(runs[0].path, verified=True)


def test_a_pipe_is_refused_at_once(runs: list[RunDirectory]) -> None:
    for run in (runs[0], runs[2]):
        run.table("metrics").unlink()
        os.mkfifo(run.table("metrics"))
        assert "not a regular file" in str(problem_with_table(run, "metrics"))
        assert "not a regular file" in str(damage(run))


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('/etc/passwd')",
        "copy (select 1) to '{elsewhere}/x.csv'",
        "set enable_external_access = true",
        "attach '{elsewhere}/x.db'",
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(
    query: str, runs: list[RunDirectory], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(UserError, match="the query does not work"):
        open_sweep(runs[0].path).sql(query.format(elsewhere=elsewhere))
    assert list(elsewhere.iterdir()) == []


def test_a_run_may_be_a_link_to_a_directory_elsewhere(
    runs: list[RunDirectory], tmp_path: Path
) -> None:
    links = tmp_path / "links [1]"
    links.mkdir()
    (links / "mine").symlink_to(runs[0].path)
    store = open_sweep(links)
    assert store.sql("select distinct run_id from metrics").fetchall() == [("mine",)]
    assert [status.run_id for status in read_statuses(links)] == ["mine"]
    with pytest.raises(UserError, match="the query does not work"):
        store.sql(f"select * from read_text('{runs[1].path}/config.json')")
