"""`epigrok settings`: the paper's tables from the configurations of runs."""

from pathlib import Path

import pytest
from written_runs import GRID, write_table

from epigrok.cli import main
from epigrok.sweeps.description import prepare


def rows_of(text: str) -> dict[str, list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {label: values for label, *values in cells}


def test_the_tables_list_what_was_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = list(prepare(tmp_path, GRID).values())
    timings = [{"step": s, "seconds_training": 50.0, "seconds_evaluating": 5.0} for s in (0, 2000)]
    write_table(runs[0], "timings", timings)
    runs[0].mark_done()
    assert main(["settings", str(tmp_path)]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["Optimisation"] == ["icl-paper", "icl-paper-ivon"]
    assert rows["training tasks"] == ["32, 64", "32, 64"]
    assert rows["training fraction"] == ["0.3, 0.5, 0.8"] * 2
    assert rows["all tasks share inputs"] == ["yes", "yes"]
    assert rows["run seeds"] == ["0, 1, 2"] * 2
    assert rows["peak learning rate"] == ["0.00015", "0.5"]
    assert rows["betas"] == ["(0.9, 0.98)", "(0.9, 0.99999)"]
    # Only one of the two optimisers has it.
    assert rows["Hessian init"] == ["", "1"]
    # No run of Muon, so no word of it.
    assert "momentum" not in rows
    assert rows["runs, of them finished"] == ["18, 1", "18, 0"]
    assert rows["time training, summed over runs"] == ["1:40", "0:00"]
    assert main(["settings", str(tmp_path), "--where", "task.train_fraction=0.5"]) == 0
    assert rows_of(capsys.readouterr().out)["training fraction"] == ["0.5", "0.5"]
