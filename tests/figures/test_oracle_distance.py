"""Distance to the exact predictors over training."""

from drawn_grid import rows

from epigrok.figures.catalogue import draw_figure
from epigrok.tables import SweepStore


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
