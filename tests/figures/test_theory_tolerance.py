"""What the noise-tolerance figure says is in its table."""

from pathlib import Path

import numpy as np
import pytest

from epigrok.errors import UserError
from epigrok.figures.output import write_drawn
from epigrok.figures.theory import rows
from epigrok.figures.theory_tolerance import draw_tolerance, tolerance_caption, tolerance_figure
from epigrok.theory.classifier.noise_tolerance import fresh_tolerance
from epigrok.theory.classifier.tolerance_table import tolerance_table
from epigrok.theory.summary import Table


@pytest.fixture(scope="module")
def table() -> Table:
    return tolerance_table(d=80, num_seeds=3)


def curve(table: Table, panel: str, family: str, quantity: str) -> Table:
    return rows(table, panel=panel, family=family, quantity=quantity, source="limit")


def test_a_more_data_raise_ratio_and_accuracy(table: Table) -> None:
    ratio = curve(table, "data", "largest margin", "ratio")["value"]
    accuracy = curve(table, "data", "largest margin", "accuracy")["value"]
    assert (np.diff(ratio) > 0).all()
    assert (np.diff(accuracy) > 0).all()
    assert ratio[0] < 0.1
    assert ratio[-1] > 0.99
    assert accuracy[-1] > 0.99


def test_b_fading_features_raise_ratio_and_accuracy_of_a_fitted_set(table: Table) -> None:
    ratio, accuracy, fitted = (
        curve(table, "features", "logistic", quantity)["value"]
        for quantity in ("ratio", "accuracy", "train_accuracy")
    )
    assert (np.diff(ratio) > 0).all()
    assert (np.diff(accuracy) > -1e-12).all()
    assert fitted.min() > 0.99
    assert (ratio[0], ratio[-1]) == pytest.approx((0.264, 0.757), abs=2e-3)
    assert (accuracy[0], accuracy[-1]) == pytest.approx((0.737, 0.954), abs=6e-3)


def test_c_clusters_raise_ratio_and_accuracy_of_a_fitted_set(table: Table) -> None:
    ratio, accuracy, fitted = (
        curve(table, "clusters", "logistic", quantity)["value"]
        for quantity in ("ratio", "accuracy", "train_accuracy")
    )
    assert (np.diff(accuracy) >= 0).all()
    # Too close to be told apart they only raise the training margins; then the ratio follows.
    lowest = ratio.argmin()
    assert 0 < lowest < 10
    assert accuracy[lowest] < 0.8
    assert (np.diff(ratio[lowest:]) > 0).all()
    assert ratio[-1] > 0.9
    assert fitted.min() > 0.999


def test_d_clusters_raise_the_tolerance_of_fresh_inputs(table: Table) -> None:
    seen, fresh = (
        curve(table, "clusters", "logistic", quantity)["value"]
        for quantity in ("tolerance_seen", "tolerance_watched")
    )
    assert fresh[0] == pytest.approx(fresh_tolerance(), rel=1e-6)
    assert (np.diff(fresh) > 0).all()
    assert fresh[-1] / fresh[0] > 2 * seen[-1] / seen[0]
    for panel in ("data", "features", "rule", "time"):
        constant = rows(table, panel=panel, quantity="tolerance_watched", source="limit")["value"]
        assert constant == pytest.approx(fresh_tolerance())


def test_e_without_a_rule_the_ratio_passes_one(table: Table) -> None:
    ratio = curve(table, "rule", "labels without", "ratio")
    assert curve(table, "rule", "labels without", "accuracy")["value"] == pytest.approx(0.5)
    assert curve(table, "rule", "labels without", "train_accuracy")["value"] == pytest.approx(1.0)
    crossed = {level: np.interp(level, ratio["value"], ratio["x"]) for level in (0.5, 1.0)}
    assert crossed[0.5] == pytest.approx(1.0, abs=0.01)
    assert crossed[1.0] == pytest.approx(1.42, abs=0.02)
    with_rule = curve(table, "rule", "labels with a rule", "ratio")["value"]
    assert (with_rule < ratio["value"]).all()
    assert with_rule[0] == pytest.approx(ratio["value"][0], rel=0.05)


def test_f_along_time_the_ratio_falls_while_accuracy_rises(table: Table) -> None:
    ratio, accuracy, fitted = (
        curve(table, "time", "least squares", quantity)["value"]
        for quantity in ("ratio", "accuracy", "train_accuracy")
    )
    is_fitted = fitted > 0.99
    assert (np.diff(ratio[is_fitted]) < 1e-9).all()
    assert (np.diff(accuracy[is_fitted]) > -1e-9).all()
    assert ratio[is_fitted][0] > 2.0
    assert ratio[-1] < 0.25


def test_simulations_stand_beside_the_limits(table: Table) -> None:
    simulated = rows(table, source="simulated")
    assert set(simulated["panel"]) == {
        "data", "features", "clusters", "rule", "time",
    }  # fmt: skip
    for panel, family, quantity, x, value in zip(
        *(simulated[name] for name in ("panel", "family", "quantity", "x", "value"))
    ):
        line = curve(table, panel, family, quantity)
        order = np.argsort(line["x"])
        limit = np.interp(x, line["x"][order], line["value"][order])
        assert value == pytest.approx(limit, rel=0.35), (panel, family, quantity, x)


def test_the_figure_has_its_panels_and_numbers(table: Table) -> None:
    figure = tolerance_figure(table)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title[:3] for title in titles] == ["(a)", "(b)", "(c)", "(d)", "(e)", "(f)"]
    assert "3 simulated classifiers of about 80 weights" in tolerance_caption(80, 3)


def test_no_simulations_are_needed(tmp_path: Path) -> None:
    drawn = draw_tolerance(50, 0)
    assert set(drawn.table["source"]) == {"limit"}
    assert "simulated" not in drawn.caption
    assert all(path.stat().st_size > 100 for path in write_drawn(drawn, tmp_path))


@pytest.mark.parametrize(("d", "num_seeds"), [(5, 1), (50, -1)])
def test_bad_sizes_are_refused(d: int, num_seeds: int) -> None:
    with pytest.raises(UserError, match=f"d = {d}, num_seeds = {num_seeds}"):
        tolerance_table(d, num_seeds)
