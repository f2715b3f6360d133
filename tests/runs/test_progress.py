"""What a person sees of a run."""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest
import torch

from epigrok.evaluation import EvaluationRow
from epigrok.runs.progress import LiveLine, NotebookLine, PlainLines, reporter_for_person


def row(split: str, posterior: str, accuracy: float) -> EvaluationRow:
    return EvaluationRow(
        split, posterior, 1, 8, {"accuracy_final": accuracy}, {}, torch.zeros(3, 15)
    )


ROWS = [row("id_val", "point", 0.25), row("ood_val", "point", 0.125), row("id_val", "other", 1.0)]
LOOKS = [{"split": "id_val", "state": "memorising"}, {"split": "id_train"}]


def test_plain_lines_come_now_and_then_and_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lines = PlainLines(100)
    lines.evaluated(0, ROWS, [])
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
    line.evaluated(50, ROWS, LOOKS)
    line.progress(50, 2.5, 2.0)
    line.close()
    line.close()
    text = capsys.readouterr().err
    assert "50/100" in text
    assert "loss 2.5000  id_val 0.250 memorising  ood_val 0.125" in " ".join(text.split("\n"))


@pytest.mark.parametrize(("is_terminal", "kind"), [(True, LiveLine), (False, PlainLines)])
def test_a_terminal_gets_a_live_line_and_a_log_plain_ones(
    is_terminal: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    reporter = reporter_for_person(10, 0)
    reporter.close()
    assert isinstance(reporter, kind)


class Cell:
    """What a notebook shows below a cell."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, content: dict[str, str], raw: bool, display_id: bool = True) -> "Cell":
        assert raw
        assert display_id
        self.lines.append(content["text/plain"])
        return self

    def update(self, content: dict[str, str], raw: bool) -> None:
        assert raw
        self.lines[-1] = content["text/plain"]


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """A notebook's kernel, as far as the package looks at one."""
    shown = Cell()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = shown.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_notebook_gets_one_line_that_is_rewritten(cell: Cell) -> None:
    reporter = reporter_for_person(60, 0)
    assert isinstance(reporter, NotebookLine)
    reporter.evaluated(0, ROWS, LOOKS)
    reporter.progress(10, 2.5, 2.0)
    reporter.progress(20, 1.5, 2.0)
    reporter.close()
    assert cell.lines == [
        f"20/60 {'█' * 10}{'░' * 20} loss 1.5000  id_val 0.250 memorising  ood_val 0.125  "
        "2.0 steps/s  0:20 left"
    ]


def test_ipython_on_a_terminal_is_no_notebook(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", object)
    assert not isinstance(reporter_for_person(60, 0), NotebookLine)
    assert cell.lines == []
