"""`epigrok figure` writes what it is asked for and says what it cannot."""

from pathlib import Path

import pytest

from epigrok.cli import main


def test_the_command_names_what_it_wrote(
    grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "trajectory", str(grid), "--out", str(tmp_path)]) == 0
    written = capsys.readouterr().out.split()
    assert written == [
        str(tmp_path / f"trajectory.{suffix}") for suffix in ("pdf", "svg", "png", "csv", "txt")
    ]
    assert all(Path(path).stat().st_size > 100 for path in written)


def test_an_unknown_name_leaves_nothing_behind(
    grid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "pie", str(grid)]) == 2
    assert "no figure named 'pie'" in capsys.readouterr().err
    assert not (grid / "figures").exists()
