"""The ratio over training, as the table has it."""

from pathlib import Path

from written_runs import write_grid

from epigrok.figures.catalogue import draw_figure
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
