"""Announcements are read from the table, in order of steps."""

from pathlib import Path

from written_runs import GRID, write_run, write_table

from epigrok.sweeps.description import prepare
from epigrok.tables import open_sweep
from epigrok.tables.announcements import announcements


def test_the_first_announcement_and_the_last_ratio(tmp_path: Path) -> None:
    run = next(iter(prepare(tmp_path, GRID).values()))
    write_run(run)
    states = [("fitting", 0.9), ("generalised", 0.8), ("generalised", None), ("lost", 0.1)]
    rows = [
        {"step": 10 * place, "split": "id_val", "state": state, "tolerance_ratio": ratio}
        for place, (state, ratio) in enumerate(states)
    ]
    write_table(run, "tolerance", [{k: v for k, v in row.items() if v is not None} for row in rows])
    run.mark_done()
    (found,) = announcements(open_sweep(tmp_path))
    assert (found.split, found.generalised_step) == ("id_val", 10)
    assert found.ratio == 0.1


def test_a_ratio_while_training_is_being_fitted_says_nothing(tmp_path: Path) -> None:
    run = next(iter(prepare(tmp_path, GRID).values()))
    write_run(run)
    row = {"step": 0, "split": "id_val", "state": "fitting", "tolerance_ratio": 1.1}
    write_table(run, "tolerance", [row])
    run.mark_done()
    (found,) = announcements(open_sweep(tmp_path))
    assert found.ratio is None
