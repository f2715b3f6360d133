"""Accuracy against confidence."""

import pytest
from drawn_grid import rows

from epigrok.figures.catalogue import draw_figure
from epigrok.tables import SweepStore


def test_calibration_pools_the_predictions_of_all_seeds(store: SweepStore) -> None:
    drawn = draw_figure("calibration", store)
    low, high = rows(drawn, preset="icl-paper", split="id_val")
    assert (low["bin"], low["count"], low["accuracy"], low["share"]) == (3, 60, 0.25, 0.5)
    # Seeds 0, 1, 2 have 10, 20 and 30 predictions, of which 0.5, 0.6 and 0.7 are right.
    assert high["accuracy"] == pytest.approx((5 + 12 + 21) / 60)
    assert "id_val 0.108" in drawn.caption
