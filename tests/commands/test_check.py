"""`epigrok check` says what is wrong, and with which exit code."""

from pathlib import Path

import pytest
from made_runs import make_sweep

from epigrok.cli import main
from epigrok.records.zoo import zoo_names


@pytest.mark.parametrize("name", zoo_names())
def test_nothing_is_wrong_with_the_zoo(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", f"zoo:{name}"]) == 0
    assert capsys.readouterr().out == "1 run, 1 finished: nothing is wrong\n"


def test_what_is_wrong_is_one_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = make_sweep(tmp_path, [500, None], [600, None])
    metrics = second.table("metrics")
    metrics.write_text(metrics.read_text().replace("0.8", "0.9"))
    (first.path / "status.json").write_text('"\x1b[31m')
    assert main(["check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 runs, 2 finished: something is wrong with 2"
    told = "\n".join(lines[:-1])
    assert f"{metrics}: its 44 rows changed after they were written" in told
    assert f"{first.path / 'status.json'}: it is not a JSON object; nothing is lost" in told
    assert len(lines) == 3


def test_a_place_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "there are no runs in" in capsys.readouterr().err
