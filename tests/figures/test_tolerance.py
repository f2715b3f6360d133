"""The ratio over training, as the table has it."""

from pathlib import Path

import pytest
from drawn_grid import rows
from table_files import write_table
from written_runs import write_grid, write_run

from epigrok.errors import UserError
from epigrok.figures.catalogue import draw_figure
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import open_sweep


def test_it_draws_accuracy_and_the_ratio_of_every_watched_split(tmp_path: Path) -> None:
    write_grid(tmp_path)
    table = draw_figure("tolerance", open_sweep(tmp_path)).table
    pairs = set(zip(table["quantity"], table["split"]))
    assert ("tolerance ratio", "id_val") in pairs
    assert ("tolerance ratio", "id_train") not in pairs
    assert ("accuracy", "id_train") in pairs
    ratios = [m for m, q in zip(table["median"], table["quantity"]) if q == "tolerance ratio"]
    assert max(ratios) == 1.0


def watched(directory: Path, *looks: dict[str, object]) -> RunDirectory:
    """A run whose monitor looked at one split, at steps 0, 100 and so on."""
    (run,) = prepare(directory, Sweep(name="one", methods=("icl-paper",))).values()
    write_run(run)
    table = [{"step": 100 * k, "split": "ood_val", **look} for k, look in enumerate(looks)]
    write_table(run, "tolerance", table)
    run.mark_done()
    return run


def test_ratios_count_once_the_training_split_is_fitted(tmp_path: Path) -> None:
    looks = [("fitting", 1.1), ("memorising", 0.1), ("memorising", 0.2)]
    run = watched(tmp_path, *({"state": s, "tolerance_ratio": r} for s, r in looks))
    drawn = draw_figure("tolerance", run.path)
    ratios = rows(drawn, quantity="tolerance ratio")
    assert [(row["step"], row["median"]) for row in ratios] == [(100.0, 0.1), (200.0, 0.2)]
    assert "ood_val was not announced; its ratio ends at 0.2." in drawn.caption


def test_a_run_that_is_still_fitting_has_no_ratio_to_draw(tmp_path: Path) -> None:
    run = watched(tmp_path, {"state": "fitting", "tolerance_ratio": 1.1})
    with pytest.raises(UserError, match="have not fitted their training split yet, and before"):
        draw_figure("tolerance", run.path)


def test_looks_that_could_not_be_read_are_told_with_their_reason(tmp_path: Path) -> None:
    reason = "seen inputs: 52 rows, 64 are needed"
    for state in ("fitting", "memorising"):
        run = watched(tmp_path / state, {"state": state, "unreadable": reason})
        with pytest.raises(UserError, match=f"could not be read at any look: {reason}"):
            draw_figure("tolerance", run.path)
