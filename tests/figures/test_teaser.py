"""The network beside the theory."""

import pytest
from drawn_grid import rows

from epigrok.figures.catalogue import draw_figure
from epigrok.tables import SweepStore


def test_the_teaser_shows_shares_of_the_peak_beside_the_theory(store: SweepStore) -> None:
    drawn = draw_figure("teaser", store)
    shares = {"quantity": "epistemic_over_peak", "posterior": "laplace"}
    network = rows(drawn, panel="icl-paper", **shares)
    assert [row["value"] for row in network] == pytest.approx([0.125, 0.5, 1.0, 0.025])
    theory = rows(drawn, panel="theory", quantity="epistemic_over_peak")
    assert max(row["value"] for row in theory) == pytest.approx(1.0, abs=0.01)
