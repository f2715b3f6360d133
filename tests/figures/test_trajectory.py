"""Curves over training, and the sentence about their events."""

import pytest
from drawn_grid import rows
from written_runs import ACCURACY

from epigrok.figures.catalogue import draw_figure
from epigrok.tables import SweepStore


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
