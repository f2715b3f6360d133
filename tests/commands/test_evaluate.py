"""`epigrok evaluate`: what it prints and where it says the table is."""

from pathlib import Path

import pytest
from tiny_run import EVALUATION, tiny

import epigrok
from epigrok.cli import main
from epigrok.runs import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return epigrok.train(tiny(num_steps=5), tmp_path_factory.mktemp("run"))


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_scores_are_printed_and_kept(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run.path), "--posteriors", "point", "--num-sequences", "26"]) == 0
    heads, *rows, table = cells(capsys.readouterr().out)
    assert heads[:4] == ["split", "posterior", "accuracy_final", "nll_final"]
    assert [row[:2] for row in rows] == [[split.name, "point"] for split in run.config.task.splits]
    assert table == ["table:", str(run.path / "evaluation.jsonl")]
    kept = run.directory.rows("evaluation")
    assert [f"{row['nll_final']:.4g}" for row in kept] == [row[3] for row in rows]


def test_a_series_is_printed_along_its_axis(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--posteriors", "point", "--num-sequences", "26"]
    assert main(["evaluate", str(run.path), "--series", "context-length", *few]) == 0
    heads, *rows, table = cells(capsys.readouterr().out)
    assert heads[:4] == ["split", "posterior", "context_length", "accuracy"]
    assert {row[2] for row in rows} == {str(length) for length in range(1, 7)}
    assert table[-1].endswith("context-length.jsonl")


def test_times_are_told_without_evaluating(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(run.path.iterdir())
    assert main(["evaluate", str(run.path), "--times"]) == 0
    heads, *rows = cells(capsys.readouterr().out)
    assert heads[2:6] == ["fitted_step", "generalised_step", "peak_step", "collapsed_step"]
    assert {row[1] for row in rows} == set(EVALUATION.posteriors) - {"point"}
    # Five steps teach nothing, but uncertainty has a peak somewhere.
    assert {(row[2], row[3]) for row in rows} == {("-", "-")}
    assert {row[4] for row in rows} <= {"0", "5"}
    assert set(run.path.iterdir()) == before


def test_a_posterior_that_does_not_exist_is_refused(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["evaluate", str(run.path), "--posteriors", "nowhere"]) == 2
    assert "no posterior named 'nowhere'" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "is not a run directory" in capsys.readouterr().err
