"""Curves against the context, as `context_curves` chooses them, with the exact predictors."""

from pathlib import Path

import pytest
import torch
from drawn_grid import rows
from table_files import write_positions, write_table
from written_runs import context_rows, write_grid, write_run

from epigrok.evaluation import Evaluation, EvaluationRow
from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.figures.catalogue import draw_figure
from epigrok.records.directory import RunDirectory
from epigrok.records.position_shards import shard_path
from epigrok.runs.recording import positions_content
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.positions import merge_positions


@pytest.mark.parametrize(
    ("name", "axis", "values"),
    [
        ("context-length", "context_length", [1, 2, 32]),
        ("context-noise", "context_noise", [0.0, 0.5, 1.0]),
    ],
)
def test_each_split_has_the_exact_predictor_that_fits_it(
    name: str, axis: str, values: list[float], store: SweepStore
) -> None:
    drawn = draw_figure(name, store)
    assert "id_train" not in drawn.table["split"]
    exact = {"id_val": "oracle-memorising", "ood_val": "oracle-generalising"}
    accuracy = {"id_val": 0.9, "ood_val": 0.8}
    for split, oracle in exact.items():
        chosen = {"preset": "icl-paper", "quantity": "accuracy", "split": split}
        curves = rows(drawn, **chosen)
        assert {row["posterior"] for row in curves} == {"laplace", oracle}
        floor = rows(drawn, **chosen, posterior=oracle)
        assert [row[axis] for row in floor] == values
        assert {row["median"] for row in floor} == {accuracy[split]}
    assert "oracle-memorising" not in {r["posterior"] for r in rows(drawn, quantity="epistemic")}


def test_context_lengths_are_known_from_training_too(tmp_path: Path) -> None:
    for run in write_grid(tmp_path):
        run.table("context_length").unlink(missing_ok=True)
        for step in (0, 300):
            metrics = {name: torch.arange(32.0) + step for name in METRIC_NAMES}
            laplace, exact = (
                EvaluationRow("ood_val", name, 16, 4, {}, metrics, torch.zeros(3, 15))
                for name in ("laplace", "oracle-generalising")
            )
            found = Evaluation(step, [laplace], exact=[] if step else [exact])
            shard_path(run.path, step).parent.mkdir(exist_ok=True)
            shard_path(run.path, step).write_bytes(positions_content(found))
        merge_positions(run.path)
    drawn = draw_figure("context-length", open_sweep(tmp_path))
    chosen = {"preset": "icl-paper", "quantity": "aleatoric"}
    curve = rows(drawn, **chosen, posterior="laplace")
    assert [row["median"] for row in curve] == [300.0 + k for k in range(32)]
    floor = rows(drawn, **chosen, posterior="oracle-generalising")
    assert [row["median"] for row in floor] == [float(k) for k in range(32)]


def one_setting(directory: Path) -> list[RunDirectory]:
    """Four finished runs that tracked context lengths while training, and have no series."""
    sweep = Sweep(name="one", methods=("icl-paper",), seeds=(0, 1, 2, 3))
    runs = list(prepare(directory, sweep).values())
    for run in runs:
        write_run(run)
        for table in ("context_length", "context_noise"):
            run.table(table).unlink()
        metrics = {name: torch.arange(32.0) for name in METRIC_NAMES}
        laplace = EvaluationRow("ood_val", "laplace", 16, 4, {}, metrics, torch.zeros(3, 15))
        write_positions(run, Evaluation(300, [laplace]))
        merge_positions(run.path)
        run.mark_done()
    return runs


def test_a_series_of_one_run_does_not_stand_for_the_tracked_lengths_of_all(tmp_path: Path) -> None:
    first, *others = one_setting(tmp_path)
    write_table(first, "context_length", context_rows(first, "context_length", (1, 2, 32)))
    drawn = draw_figure("context-length", open_sweep(tmp_path))
    chosen = {"quantity": "accuracy", "split": "ood_val", "posterior": "laplace"}
    assert [row["num_runs"] for row in rows(drawn, **chosen)] == [4] * 32
    assert "for 4 runs" in drawn.caption
    assert "The series of 1 run is not drawn, because the others have none." in drawn.caption
    for run in others:
        write_table(run, "context_length", context_rows(run, "context_length", (1, 2, 32)))
    drawn = draw_figure("context-length", open_sweep(tmp_path))
    assert [row["num_runs"] for row in rows(drawn, **chosen)] == [4] * 3
    assert "not drawn" not in drawn.caption


def test_titles_and_captions_count_the_runs_that_are_drawn(tmp_path: Path) -> None:
    first, second, *_ = one_setting(tmp_path)
    for run in (first, second):
        write_table(run, "context_noise", context_rows(run, "context_noise", (0.0, 1.0)))
    drawn = draw_figure("context-noise", open_sweep(tmp_path))
    assert {row["num_runs"] for row in rows(drawn)} == {2}
    assert "for 2 runs" in drawn.caption
    assert "Only 2 of 4 runs have these curves and are drawn." in drawn.caption
    assert drawn.figure.axes[0].get_title().endswith("2 runs")


def test_a_curve_is_of_one_ensemble(tmp_path: Path) -> None:
    run = one_setting(tmp_path)[0]
    table = [
        {**row, "posterior": "ensemble", "members": members, "accuracy": accuracy}
        for members, accuracy in (("a b", 0.25), ("a b c", 0.75))
        for row in context_rows(run, "context_noise", (0.0, 1.0))
        if row["posterior"] == "point"
    ]
    write_table(run, "context_noise", table)
    drawn = draw_figure("context-noise", open_sweep(tmp_path))
    curve = rows(drawn, quantity="accuracy", split="ood_val", posterior="ensemble")
    assert [(row["context_noise"], row["median"]) for row in curve] == [(0.0, 0.25), (1.0, 0.25)]
    assert "Of 2 ensembles, the one of a b is drawn." in drawn.caption


def test_a_series_of_one_length_is_told_as_one(tmp_path: Path) -> None:
    run = one_setting(tmp_path)[0]
    write_table(run, "context_length", context_rows(run, "context_length", (32,)))
    caption = draw_figure("context-length", run.path).caption
    assert "on ood_val, at context length 32: accuracy is 0.5, EU is 0.1, AU is 0.2." in caption
