"""`epigrok export`."""

from pathlib import Path

import duckdb
import pytest
from table_files import write_table

from epigrok.cli import main
from epigrok.sweeps.description import Sweep, prepare


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two runs with a point of the curve each; the first is done and has a final evaluation."""
    first, second = prepare(
        tmp_path / "sweep", Sweep(name="s", methods=("classic",), seeds=(0, 1))
    ).values()
    row = {"step": 5, "split": "id_val", "posterior": "point", "accuracy": 0.5}
    for run in (first, second):
        write_table(run, "metrics", [row])
    write_table(first, "final", [row | {"accuracy": 0.75}])
    first.mark_done()
    return tmp_path / "sweep"


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ([], [(0, 0.5), (1, 0.5)]),
        (["--done-only"], [(0, 0.5)]),
        (["--table", "final"], [(0, 0.75)]),
        (["--table", "latest"], [(0, 0.75), (1, 0.5)]),
    ],
)
def test_rows_are_written_with_the_configuration_of_their_run(
    flags: list[str],
    found: list[tuple[int, float]],
    sweep: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "out.parquet"
    assert main(["export", str(sweep), str(file), *flags]) == 0
    assert capsys.readouterr().out == f"{len(found)} rows in {file}\n"
    query = f"select run_seed, accuracy from '{file}' order by run_seed"
    assert duckdb.sql(query).fetchall() == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "x.csv"], "must end in .parquet, got x.csv"),
        (["nowhere", "x.parquet"], "there is no directory"),
        (["sweep", "/proc/x.parquet"], "cannot write to /proc"),
        (["sweep", "x.parquet", "--table", "runz"], "no table named 'runz'; there are: runs, metr"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str],
    message: str,
    sweep: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(sweep.parent)
    assert main(["export", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(sweep.parent.glob("*.parquet"))
