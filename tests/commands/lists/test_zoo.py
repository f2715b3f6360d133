"""`epigrok zoo`, and the other commands on what it lists."""

import json
from pathlib import Path

import pytest

from epigrok.cli import main


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are copied to the current directory."""
    monkeypatch.chdir(tmp_path)


def test_entries_are_listed_and_their_cards_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo"]) == 0
    text = capsys.readouterr().out
    assert "zoo:icl-tiny" in text
    assert "zoo/NAME" in text
    for name in ("icl-tiny", "zoo:icl-tiny"):
        assert main(["zoo", name]) == 0
        assert "hidden multiplier" in capsys.readouterr().out
    assert main(["zoo", "nothing"]) == 2
    assert "no run named 'nothing'" in capsys.readouterr().err


def test_an_entry_can_be_evaluated_at_once(tmp_path: Path) -> None:
    few = ["--num-sequences", "64", "--device", "cpu"]
    assert main(["evaluate", "zoo:icl-tiny", "--posteriors", "point", *few]) == 0
    rows = (tmp_path / "zoo/icl-tiny/evaluation.jsonl").read_text().splitlines()
    accuracy = {row["split"]: row["accuracy_final"] for row in map(json.loads, rows)}
    assert accuracy["ood_val"] > 0.95


def test_an_entry_can_be_drawn_at_once(tmp_path: Path) -> None:
    assert main(["figure", "trajectory", "zoo:icl-tiny"]) == 0
    assert (tmp_path / "zoo/icl-tiny/figures/trajectory.pdf").exists()


@pytest.mark.parametrize("command", ["status", "separation"])
def test_entries_are_named_alike_everywhere(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "zoo:icl-tiny"]) == 0
    assert "icl-tiny" in capsys.readouterr().out
