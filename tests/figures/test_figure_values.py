"""The plotted numbers are those of the tables, computed by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.collections import QuadMesh
from written_runs import ACCURACY, write_grid

from epigrok.evaluation import METRICS, EvaluationRow
from epigrok.experiments import SweepStore, open_sweep
from epigrok.experiments.position_shards import merge_positions
from epigrok.experiments.positions import write_positions
from epigrok.figures.catalogue import DrawnFigure, draw_figure


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SweepStore:
    path = tmp_path_factory.mktemp("grid")
    write_grid(path)
    return open_sweep(path)


def rows(drawn: DrawnFigure, **wanted: object) -> list[dict[str, Any]]:
    every = [dict(zip(drawn.table, values)) for values in zip(*drawn.table.values(), strict=True)]
    return [row for row in every if all(row[name] == value for name, value in wanted.items())]


def panel_titled(drawn: DrawnFigure, title: str, row: int) -> np.ma.MaskedArray:
    """Values of a map, as drawn."""
    panels = [axes for axes in drawn.figure.axes if axes.get_title() == title]
    (mesh,) = [artist for artist in panels[row].collections if isinstance(artist, QuadMesh)]
    return mesh.get_array()


def test_maps_show_medians_and_leave_missing_cells_empty(store: SweepStore) -> None:
    drawn = draw_figure("accuracy-heatmaps", store)
    ivon = panel_titled(drawn, "ood_val, ivon", 0)
    expected = 0.96 * np.array([[0.3, 0.5, 0.8], [0.3, 0.5, 0.8]]) / 0.8
    assert ivon.mask.tolist() == [[False, False, False], [False, False, True]]
    assert ivon.compressed() == pytest.approx(expected.ravel()[:-1])
    laplace = panel_titled(drawn, "ood_val, laplace", 0)
    assert not np.ma.getmaskarray(laplace).any()
    cell = {"task.num_base_tasks": 16, "task.train_fraction": 0.8, "split": "ood_val"}
    (missing,) = rows(drawn, preset="icl-paper-ivon", **cell)
    assert np.isnan(missing["median"])
    assert (missing["num_runs"], missing["num_unfinished"]) == (0, 3)
    assert "ood_val: accuracy from 0.36 to 0.96 (5 of 6 cells)" in drawn.caption


def test_cells_with_unfinished_runs_are_marked(store: SweepStore) -> None:
    drawn = draw_figure("accuracy-heatmaps", store)
    texts = {
        axes.get_title(): [text.get_text() for text in axes.texts] for axes in drawn.figure.axes
    }
    assert texts["ood_val, laplace"] == ["0.36*", "0.60", "0.96", "0.36", "0.60", "0.96"]
    assert texts["ood_val, ivon"] == ["0.36", "0.60", "0.96", "0.36", "0.60"]
    labels = {axes.get_ylabel() for axes in drawn.figure.axes}
    assert "icl-paper\ntraining tasks T" in labels
    ticks = [label.get_text() for label in drawn.figure.axes[0].get_yticklabels()]
    assert ticks == ["32", "64"]


def test_uncertainty_maps_are_medians_over_seeds(store: SweepStore) -> None:
    drawn = draw_figure("uncertainty-heatmaps", store)
    cell = {"task.num_base_tasks": 8, "task.train_fraction": 0.5, "split": "id_val"}
    (epistemic,) = rows(drawn, preset="icl-paper", quantity="epistemic", **cell)
    assert epistemic["median"] == pytest.approx(0.02 * 2.0)
    assert epistemic["lower"] == pytest.approx(0.02 * 1.05)
    assert epistemic["num_runs"] == 3
    (aleatoric,) = rows(drawn, preset="icl-paper", quantity="aleatoric", **cell)
    assert aleatoric["median"] == pytest.approx(1.0)


def test_trajectories_tell_when_uncertainty_peaked_and_accuracy_passed(store: SweepStore) -> None:
    drawn = draw_figure("trajectory", store)
    of_laplace = {"quantity": "epistemic", "posterior": "laplace"}
    curve = rows(drawn, preset="icl-paper", split="ood_val", **of_laplace)
    assert [row["step"] for row in curve] == [0, 100, 200, 300]
    assert [row["median"] for row in curve] == pytest.approx([0.2, 0.8, 1.6, 0.04])
    accuracy = rows(drawn, preset="icl-paper", quantity="accuracy", split="id_val")
    assert [row["median"] for row in accuracy] == pytest.approx(ACCURACY["id_val"])
    assert {row["posterior"] for row in accuracy} == {"point"}
    assert (
        ": EU of laplace on ood_val peaks at step 200 (1.6 nats) and is at 2.5 % of it "
        "when accuracy passes 0.95 (step 300 in 3 of 3 runs, after the peak in 3 of them)"
    ) in drawn.caption
    assert "icl-paper, training tasks T = 32, training fraction = 0.8: EU of" in drawn.caption
    line = drawn.figure.axes[0].get_lines()[1]
    assert line.get_ydata() == pytest.approx(ACCURACY["id_val"])


def test_the_teaser_shows_shares_of_the_peak_beside_the_theory(store: SweepStore) -> None:
    drawn = draw_figure("teaser", store)
    shares = {"quantity": "epistemic_over_peak", "posterior": "laplace"}
    network = rows(drawn, panel="icl-paper", **shares)
    assert [row["value"] for row in network] == pytest.approx([0.125, 0.5, 1.0, 0.025])
    theory = rows(drawn, panel="theory", quantity="epistemic_over_peak")
    assert max(row["value"] for row in theory) == pytest.approx(1.0, abs=0.01)


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
        run.table("context-length").unlink(missing_ok=True)
        for step, posteriors in ((0, ("oracle-generalising", "laplace")), (300, ("laplace",))):
            metrics = {name: torch.arange(32.0) + step for name in METRICS}
            rows_of_step = [
                EvaluationRow("ood_val", name, 16, 4, {}, metrics, torch.zeros(3, 15))
                for name in posteriors
            ]
            write_positions(run.path, step, rows_of_step)
        merge_positions(run.path)
    drawn = draw_figure("context-length", open_sweep(tmp_path))
    chosen = {"preset": "icl-paper", "quantity": "aleatoric"}
    curve = rows(drawn, **chosen, posterior="laplace")
    assert [row["median"] for row in curve] == [300.0 + k for k in range(32)]
    floor = rows(drawn, **chosen, posterior="oracle-generalising")
    assert [row["median"] for row in floor] == [float(k) for k in range(32)]


def test_distance_to_the_exact_predictors_over_training(store: SweepStore) -> None:
    drawn = draw_figure("oracle-distance", store)
    chosen = {"preset": "icl-paper", "split": "ood_val"}
    for quantity, expected in {
        "kl_memorising": [1.0, 2.0, 3.0, 4.0],
        "kl_generalising": [4.0, 3.0, 2.0, 1.0],
        "relative_position": [1.0, 0.5, 0.0, -0.5],
    }.items():
        curve = rows(drawn, quantity=quantity, **chosen)
        assert [row["median"] for row in curve] == expected
    assert "relative position from +1.00 at most to -0.50 at the end" in drawn.caption


def test_calibration_pools_the_predictions_of_all_seeds(store: SweepStore) -> None:
    drawn = draw_figure("calibration", store)
    low, high = rows(drawn, preset="icl-paper", split="id_val")
    assert (low["bin"], low["count"], low["accuracy"], low["share"]) == (3, 60, 0.25, 0.5)
    # Seeds 0, 1, 2 have 10, 20 and 30 predictions, of which 0.5, 0.6 and 0.7 are right.
    assert high["accuracy"] == pytest.approx((5 + 12 + 21) / 60)
    assert "id_val 0.108" in drawn.caption
