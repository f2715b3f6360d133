"""What a person sees of a run."""

import sys
import time

import pytest
import torch

from epigrok.evaluation import EvaluationRow
from epigrok.runs.progress import LiveLine, PlainLines, reporter_for_terminal


def row(split: str, posterior: str, accuracy: float) -> EvaluationRow:
    return EvaluationRow(
        split, posterior, 1, 8, {"accuracy_final": accuracy}, {}, torch.zeros(3, 15)
    )


ROWS = [row("id_val", "point", 0.25), row("ood_val", "point", 0.125), row("id_val", "other", 1.0)]


def test_plain_lines_come_now_and_then_and_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lines = PlainLines(100)
    lines.evaluated(0, ROWS)
    lines.progress(10, 2.5, 2.0)
    assert capsys.readouterr().out == (
        "step 10/100  loss 2.5000  id_val 0.250  ood_val 0.125  2.0 steps/s  0:45 left\n"
    )
    now += 9.0
    lines.progress(20, 2.5, 2.0)
    assert capsys.readouterr().out == ""
    now += 2.0
    lines.progress(30, 2.5, 0.0)
    assert "step 30/100" in (text := capsys.readouterr().out)
    assert text.endswith("? left\n")
    lines.progress(100, 0.5, 2.0)
    assert "step 100/100  loss 0.5000" in capsys.readouterr().out
    lines.close()


def test_a_live_line_shows_the_same_and_leaves_the_terminal_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = LiveLine(100, 40)
    line.evaluated(50, ROWS)
    line.progress(50, 2.5, 2.0)
    line.close()
    line.close()
    text = capsys.readouterr().err
    assert "50/100" in text
    assert "loss 2.5000  id_val 0.250  ood_val 0.125" in text


@pytest.mark.parametrize(("is_terminal", "kind"), [(True, LiveLine), (False, PlainLines)])
def test_a_terminal_gets_a_live_line_and_a_log_plain_ones(
    is_terminal: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    reporter = reporter_for_terminal(10, 0)
    reporter.close()
    assert isinstance(reporter, kind)
