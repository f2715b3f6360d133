"""`epigrok init`: an example that `epigrok sweep` takes."""

from pathlib import Path

import pytest

from epigrok.cli import main


def test_the_example_is_accepted_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "sweep.toml"]) == 0
    assert "`epigrok sweep sweep.toml --dry-run`" in capsys.readouterr().out
    assert main(["sweep", "sweep.toml", "--dry-run"]) == 0
    assert "sweep tasks and fractions: 16 runs" in capsys.readouterr().out


def test_an_existing_file_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    assert main(["init", str(file)]) == 2
    assert "exists and is left as it is" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_another_ending_and_a_place_that_cannot_be_written_to_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "sweep.json")]) == 2
    assert "must end in .toml" in capsys.readouterr().err
    assert main(["init", "/proc/nowhere/sweep.toml"]) == 2
    assert "cannot write to /proc/nowhere" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
