"""Runs of a directory chosen by their fields."""

from pathlib import Path

import pytest
from written_runs import GRID, write_grid

from epigrok.errors import UserError
from epigrok.figures.catalogue import draw_figure
from epigrok.records.directory import run_directories
from epigrok.report import write_report
from epigrok.sweeps.description import prepare
from epigrok.tables import open_sweep
from epigrok.tables.choosing import chosen_runs

CELL = ("task.num_base_tasks=8", "task.train_fraction=0.5")


def test_runs_are_chosen_by_their_configuration(tmp_path: Path) -> None:
    prepare(tmp_path, GRID)
    runs = run_directories(tmp_path)
    assert chosen_runs(runs, ()) == runs
    chosen = [run.config() for run in chosen_runs(runs, (*CELL, "run_seed=0,2"))]
    assert {c.preset for c in chosen} == {"icl-paper", "icl-paper-ivon"}
    assert {c.task.num_base_tasks for c in chosen} == {8}
    assert {c.task.train_fraction for c in chosen} == {0.5}
    assert sorted(c.run_seed for c in chosen) == [0, 0, 2, 2]
    # A configuration that nobody can read meets no condition, and hides no other run.
    (runs[0].path / "config.json").write_text("{")
    assert runs[0] not in chosen_runs(runs, ("run_seed=0,1,2",))


def test_figures_and_reports_show_the_cell_that_was_asked_for(tmp_path: Path) -> None:
    write_grid(tmp_path)
    store = open_sweep(tmp_path, where=CELL)
    drawn = draw_figure("context-length", store)
    assert set(drawn.table["preset"]) == {"icl-paper", "icl-paper-ivon"}
    assert "Only runs with task.num_base_tasks = 8, task.train_fraction = 0.5." in drawn.caption
    assert "the most accurate" not in drawn.caption
    # Without the choice the most accurate cell of each preset is shown.
    assert "the most accurate" in draw_figure("context-length", open_sweep(tmp_path)).caption
    page = write_report(tmp_path, where=(*CELL, "preset=icl-paper")).read_text()
    names = {run.path.name for run in chosen_runs(run_directories(tmp_path), CELL)}
    shown = {run.path.name for run in run_directories(tmp_path) if run.path.name in page}
    assert shown < names
    assert len(shown) == 3
    with pytest.raises(UserError, match=r"no run has task\.num_base_tasks = 64; there are: 8, 16"):
        open_sweep(tmp_path, where=("task.num_base_tasks=64",))
