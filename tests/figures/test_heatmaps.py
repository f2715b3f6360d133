"""Maps show medians over seeds, and what is missing."""

from pathlib import Path

import numpy as np
import pytest
from drawn_grid import panel_titled, rows
from made_up_grids import ONE_PARAMETER, as_the_paper_says, write_runs

from epigrok.figures.catalogue import draw_figure
from epigrok.tables import SweepStore


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


def test_total_uncertainty_and_its_epistemic_share_have_maps_of_their_own(
    store: SweepStore,
) -> None:
    drawn = draw_figure("uncertainty-heatmaps", store)
    cell = {"task.num_base_tasks": 8, "task.train_fraction": 0.5, "split": "id_val"}
    of = {
        q: rows(drawn, preset="icl-paper", quantity=q, **cell)[0] for q in drawn.table["quantity"]
    }
    share = of["epistemic share"]
    assert share["median"] == pytest.approx(of["epistemic"]["median"] / of["total"]["median"])
    assert 0.0 < share["lower"] <= share["median"] <= share["upper"] <= 1.0
    titles = {axes.get_title() for axes in drawn.figure.axes}
    assert {"total, id_val, laplace", "epistemic share, id_val, laplace"} <= titles


def test_the_caption_says_what_the_pooled_runs_differ_in(store: SweepStore) -> None:
    caption = draw_figure("accuracy-heatmaps", store).caption
    pooled = "median over runs that differ in tasks and inputs and initial weights and batches"
    assert pooled in caption


def test_a_grid_of_the_one_parameter_family_has_its_own_task_counts_and_splits(
    tmp_path: Path,
) -> None:
    write_runs(tmp_path, ONE_PARAMETER, ONE_PARAMETER.sweep("tiny"), as_the_paper_says)
    drawn = draw_figure("uncertainty-heatmaps", tmp_path)
    panels = [axes for axes in drawn.figure.axes if axes.get_title()]
    # Four quantities, two methods, and two splits besides training.
    assert len(panels) == 4 * 2 * 2
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["6", "12", "20", "26"]
    assert {axes.get_xlabel() for axes in panels} == {"training fraction of inputs"}
    assert panels[0].get_ylabel() == "icl-tiny\ntraining tasks T"


def test_each_preset_has_colours_of_its_own_in_nats_and_shares_them_otherwise(
    store: SweepStore,
) -> None:
    drawn = draw_figure("uncertainty-heatmaps", store)
    bars = [axes for axes in drawn.figure.axes if axes.get_ylabel() in ("EU (nats)", "EU/TU")]
    assert [axes.get_ylabel() for axes in bars] == ["EU (nats)"] * 2 + ["EU/TU"] * 2
    assert {axes.get_ylim() for axes in bars[2:]} == {(0.0, 1.0)}


def test_only_what_there_is_gets_a_note(store: SweepStore, tmp_path: Path) -> None:
    notes = ("Hatched cells are missing", "hold runs that are not finished")
    assert all(note in draw_figure("accuracy-heatmaps", store).caption for note in notes)
    write_runs(tmp_path, ONE_PARAMETER, ONE_PARAMETER.sweep("tiny"), as_the_paper_says)
    whole = draw_figure("accuracy-heatmaps", tmp_path)
    assert not any(note in whole.caption for note in notes)
    assert not whole.figure.legends
    assert "bands that hold 95 % of the runs, which for 2 runs is nearly their range" in (
        whole.caption
    )
