"""Medians and bands as arrays, and as rows of a figure's table."""

import numpy as np
from matplotlib.figure import Figure

from epigrok.figures.curves import Curve, curves_along, draw_curve


def two_curves() -> dict[str, object]:
    """What `median_and_band` returns for two splits of one posterior."""
    return {
        "split": np.array(["id_train", "id_val", "id_train", "id_val"]),
        "posterior": np.array(["point"] * 4),
        "step": np.array([0, 0, 10, 10]),
        "median": np.array([0.1, 0.2, 0.3, 0.4]),
        "lower": np.array([0.0, 0.1, 0.2, 0.3]),
        "upper": np.array([0.2, 0.3, 0.4, 0.5]),
        "count": np.array([3, 3, 3, 2]),
    }


def test_a_result_is_cut_into_a_curve_per_split_and_posterior() -> None:
    curves = curves_along("step", two_curves())
    assert set(curves) == {("id_train", "point"), ("id_val", "point")}
    assert curves["id_val", "point"].median.tolist() == [0.2, 0.4]
    assert curves["id_val", "point"].x.tolist() == [0.0, 10.0]


def test_a_point_becomes_a_row_with_its_keys() -> None:
    curve = curves_along("step", two_curves())["id_val", "point"]
    last = curve.rows("step", {"preset": "p"})[-1]
    assert last == {
        "preset": "p", "step": 10.0, "median": 0.4, "lower": 0.3, "upper": 0.5, "num_runs": 2
    }  # fmt: skip


def test_only_several_runs_have_a_band() -> None:
    axes = Figure().subplots()
    values = np.array([1.0, 2.0])
    draw_curve(axes, Curve(values, values, values, values, np.array([1.0, 1.0])), {"color": "red"})
    assert len(axes.collections) == 0
    draw_curve(axes, Curve(values, values, values, values, np.array([2.0, 1.0])), {"color": "red"})
    assert len(axes.collections) == 1
