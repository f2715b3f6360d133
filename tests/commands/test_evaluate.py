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
    text = capsys.readouterr().out
    assert "\nof the last answer; nll, total, aleatoric and epistemic in nats\n" in text
    heads, *rows, _, table = cells(text)
    assert heads[:4] == ["split", "posterior", "accuracy", "nll"]
    assert [row[:2] for row in rows] == [[split.name, "point"] for split in run.config.task.splits]
    assert table == ["table:", str(run.path / "evaluation.jsonl")]
    kept = run.directory.rows("evaluation")
    assert [f"{row['nll_final']:.4g}" for row in kept] == [row[3] for row in rows]


def test_a_series_is_printed_along_its_axis(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--posteriors", "point", "--num-sequences", "26"]
    assert main(["evaluate", str(run.path), "--series", "context-length", *few]) == 0
    heads, *rows, _, table = cells(capsys.readouterr().out)
    assert heads[:2] == ["context_length", "accuracy"]
    titles = [row for row in rows if len(row) == 2]
    assert len(titles) == len(set(map(tuple, titles)))
    assert ["ood_val,", "point"] in titles
    assert {row[0] for row in rows if row not in titles} == {str(k) for k in range(1, 7)}
    assert table[-1].endswith("context-length.jsonl")


def test_times_are_told_without_evaluating(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(run.path.iterdir())
    assert main(["evaluate", str(run.path), "--times"]) == 0
    heads, *rows, note = cells(capsys.readouterr().out)
    assert heads[2:6] == ["fitted", "generalised", "peak", "collapsed"]
    assert note[:3] == ["steps;", "a", "lead"]
    assert {row[1] for row in rows} == set(EVALUATION.posteriors) - {"point"}
    # Five steps teach nothing, but uncertainty has a peak somewhere.
    assert {(row[2], row[3]) for row in rows} == {("-", "-")}
    assert {row[4] for row in rows} <= {"0", "5"}
    assert set(run.path.iterdir()) == before


@pytest.mark.parametrize("arguments", [["--times"], [], ["--series", "context-noise"]])
def test_every_line_fits_a_page(
    arguments: list[str], run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [] if arguments == ["--times"] else ["--num-sequences", "26", "--num-samples", "2"]
    assert main(["evaluate", str(run.path), *arguments, *few]) == 0
    *lines, place = capsys.readouterr().out.splitlines()
    lines += [place] if arguments == ["--times"] else []
    assert len(lines) > 3
    assert max(map(len, lines)) <= 100


def test_a_posterior_that_does_not_exist_is_refused(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["evaluate", str(run.path), "--posteriors", "nowhere"]) == 2
    assert "no posterior named 'nowhere'" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "is not a run directory" in capsys.readouterr().err
