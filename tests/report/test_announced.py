"""The page says what the monitor announced before it turns to uncertainties."""

from pathlib import Path

from made_runs import announce, make_sweep
from report_pages import Document

from epigrok.report import write_report


def test_announcements_are_compared_with_accuracy_and_come_first(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[600, 700, None], collapsed=[500, 500, None])
    for run, step in zip(runs, [700, 900, None], strict=True):
        announce(run, step)
    text = Document(write_report(tmp_path)).text
    said = (
        "The monitor, which sees no labels, announced generalisation to unseen inputs in 2 of 2 "
        "that got there, at step 800, 150 steps after accuracy, and in 0 of 1 that did not get "
        "there."
    )
    assert said in text
    assert text.index(said) < text.index("Uncertainty collapsed no later")
    assert "The monitor announced it in 2 of 2 that got there, at step 800" in text


def test_a_miss_a_false_alarm_and_a_loss_are_told(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[600, None], collapsed=[500, None])
    announce(runs[0], None)
    announce(runs[1], 300, last_state="lost")
    text = Document(write_report(tmp_path)).text
    assert "in 0 of 1 that got there, and in 1 of 1 that did not get there; it saw 1 run" in text


def test_an_announcement_together_with_accuracy(tmp_path: Path) -> None:
    (run,) = make_sweep(tmp_path, generalised=[600], collapsed=[500])
    announce(run, 600)
    text = Document(write_report(tmp_path)).text
    assert "in 1 of 1 that got there, at step 600, together with accuracy." in text


def test_runs_that_were_not_watched_say_nothing(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[600], collapsed=[500])
    assert "monitor, which" not in Document(write_report(tmp_path)).text
