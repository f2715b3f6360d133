"""`epigrok separation`: from small files to the table and the one behind it."""

import csv
from pathlib import Path

import pytest
from table_files import append_rows

from epigrok.cli import main
from epigrok.sweeps.description import Condition, Sweep, prepare

FINAL_EPISTEMIC = {"plain": 0.02, "random labels": 0.4}


def write_sweep(directory: Path, methods: tuple[str, ...]) -> Path:
    """Two runs of each method that generalise and two controls, all fitted from the start."""
    description = Sweep(
        name="s",
        methods=methods,
        variants=("plain", "random labels"),
        seeds=(0, 1),
        overrides={"num_steps": 20},
        conditions=(
            Condition(where={"variant": "random labels"}, set={"task.random_labels": True}),
        ),
    )
    for run in prepare(directory, description).values():
        is_control = run.config().task.random_labels
        final = FINAL_EPISTEMIC["random labels" if is_control else "plain"]
        for step, epistemic in ((0, 0.5), (20, final)):
            append_rows(
                run.table("metrics"),
                (
                    {
                        "step": step,
                        "split": split,
                        "posterior": posterior,
                        "num_samples": num_samples,
                        "num_sequences": 8,
                        "accuracy_final": 0.0 if is_control and split == "id_val" else 1.0,
                        "total_final": 0.3,
                        "epistemic_final": 0.01 if split == "id_train" else epistemic,
                    }
                    for split in ("id_train", "id_val")
                    for posterior, num_samples in (("point", 1), ("weight-noise:0.1", 16))
                ),
            )
        run.mark_done()
    return directory


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    return write_sweep(tmp_path / "sweep", ("classic",))


def test_it_prints_margins_and_overlaps(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["separation", str(sweep)]) == 0
    cells = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in capsys.readouterr().out.splitlines()
    ]
    assert ["classic", "2", "2", "0", "0"] in cells
    heads = ["uncertainty at its peak", "uncertainty / ln C", "uncertainty / own peak"]
    assert ["preset", "posterior", "runs", *heads, "uncertainty / training split's"] in cells
    # ln 59 = 4.078; 0.02 and 0.4 over it, over the peak 0.5, and over 0.01 on the training split.
    noise = ["0.5 / 0.5, overlap", "0.0049 / 0.098, ×20", "0.04 / 0.8, ×20", "2 / 40, ×20"]
    assert ["classic", "weight-noise:0.1", "2 v 2", *noise] in cells
    entropy = ["0.3 / 0.3, overlap", "0.074 / 0.074, overlap", "1 / 1, overlap", "1 / 1, overlap"]
    assert ["classic", "point", "2 v 2", *entropy] in cells


def test_several_presets_are_also_taken_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["separation", str(write_sweep(tmp_path, ("classic", "classic-ivon")))]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()]
    runs = {tuple(cell.strip() for cell in row[1:4]) for row in rows if len(row) == 9}
    assert ("all of them", "weight-noise:0.1", "4 v 4") in runs
    assert ("classic-ivon", "weight-noise:0.1", "2 v 2") in runs


def test_the_table_behind_names_every_run(sweep: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    assert main(["separation", str(sweep), "--csv", str(file)]) == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 4 * 2
    control = [r for r in rows if r["fate"] == "memorised" and r["posterior"] != "point"]
    assert {r["seed"] for r in control} == {"0", "1"}
    assert {(r["peak_once_fitted_step"], r["of_peak"]) for r in control} == {("0", "0.8")}
    assert {r["variant"] for r in control} == {"random labels = True"}
    assert {r["run_id"] for r in rows} == {path.name for path in sweep.iterdir() if path.is_dir()}


def test_unfinished_runs_are_counted_and_left_out(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # All its rows are there, but it has not said that it is done.
    next(sweep.glob("*/DONE")).unlink()
    assert main(["separation", str(sweep)]) == 0
    assert "1 of 4 runs are not finished" in capsys.readouterr().out
    assert main(["separation", str(sweep), "--split", "ood_val"]) == 2
    assert "no finished run" in capsys.readouterr().err
