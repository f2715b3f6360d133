"""`epigrok demo`: the part that is not a sweep and a report."""

import shutil
import sys
from pathlib import Path

import pytest
from made_runs import announce, make_sweep

import epigrok
from epigrok.commands import demo
from epigrok.records.zoo import unpacked
from epigrok.sweeps.description import runs_of


def test_the_demo_walks_along_the_run_that_comes_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "LADDER_SAMPLES", 2)
    monkeypatch.setattr(demo, "LADDER_SEQUENCES", 24)
    ladder = unpacked(demo.LADDER, tmp_path)
    # Every fourth rung and the last show the whole story.
    kept = {*(steps := epigrok.open_run(ladder).checkpoints)[::4], steps[-1]}
    for step in set(steps) - kept:
        shutil.rmtree(ladder / "checkpoints" / f"step-{step}")
    lines = demo.ladder_lines(ladder)
    rows = [line.split() for line in lines if ", EU 0" in line]
    assert [int(row[0]) for row in rows] == sorted(kept)
    held_out = [(float(row[4].strip(",")), float(row[6])) for row in rows]
    assert held_out[0][0] < 0.2
    assert held_out[-1][0] > 0.9
    # Uncertainty is largest on the way, not at either end.
    assert held_out[-1][1] < max(uncertainty for _, uncertainty in held_out[1:]) / 2


def test_the_demo_trains_what_it_announces() -> None:
    assert {config.preset for config in runs_of(demo.DEMO).values()} == set(demo.ABOUT)
    for config in runs_of(demo.DEMO).values():
        assert demo.SHOWN_POSTERIOR in config.evaluation.posteriors


def test_the_demo_ends_with_what_was_announced_beside_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = make_sweep(tmp_path, generalised=[700], collapsed=[600])
    announce(run, 800)
    monkeypatch.setattr(demo, "ABOUT", {"classic": ""})
    assert demo.conclusions(tmp_path) == [
        "",
        "classic",
        "  It generalised to unseen inputs at step 700.",
        "  The monitor, which sees no labels, said so at step 800.",
    ]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_gets_a_table_and_a_log_gets_lines(
    is_terminal: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (run,) = make_sweep(tmp_path, generalised=[700], collapsed=[600])
    announce(run, 800)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(demo, "ladder_lines", lambda path: iter([f"along {path.name}"]))
    meanwhile = demo._Meanwhile(tmp_path, Path("a ladder"))
    with meanwhile.going_on():
        pass
    meanwhile._print_progress()
    text = capsys.readouterr().out
    assert "along a ladder" in text
    assert ("1,000/1,000" in text and "▁▁▁▁▁▁▁████" in text) == is_terminal
    # Once, because the run has not moved on.
    assert text.count("step 1000/1000") == (not is_terminal)
