"""`epigrok report` writes the page and says where."""

from pathlib import Path

import pytest
from made_runs import make_sweep, one_figure

from epigrok.cli import main
from epigrok.report import page


def test_the_command_prints_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "draw_all", one_figure)
    make_sweep(tmp_path / "runs", generalised=[700], collapsed=[600])
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "page")]) == 0
    printed = Path(capsys.readouterr().out.strip())
    assert printed == tmp_path / "page" / "index.html"
    assert "<h1>It generalised to unseen inputs at step 700" in printed.read_text()


def test_a_directory_without_runs_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "there are no runs" in capsys.readouterr().err
