"""The figures' data bear out their captions, and the files are complete and reproducible."""

import csv
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from epigrok.errors import UserError
from epigrok.figures.output import csv_text, write_figure
from epigrok.figures.theory import rows, summary_caption, summary_figure
from epigrok.figures.theory_delay_error import delay_error_caption, delay_error_figure
from epigrok.theory.linear_model import LinearModel, summary_model
from epigrok.theory.summary import Table, delay_error_table, event_times, summary_table
from epigrok.theory.threshold import GROK_ACCURACY

NUM_SEEDS = 5


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return summary_model(1000)


@pytest.fixture(scope="module")
def summary(model: LinearModel) -> Table:
    return summary_table(model, NUM_SEEDS)


@pytest.fixture(scope="module")
def errors() -> Table:
    return delay_error_table(np.linspace(0.05, 0.99, 12), np.geomspace(1e-12, 0.5, 10))


def curve(table: Table, **wanted: str | float) -> tuple[np.ndarray, np.ndarray]:
    chosen = rows(table, **wanted)
    return chosen["s"], chosen["value"]


def time_at_risk(table: Table, side: str, lam: float, risk: float) -> float:
    s, value = curve(table, panel="dynamics", source="limit", side=side, lam=lam)
    return float(np.interp(-np.log(risk), -np.log(value), s))


def test_a_generalisation_trails_training_more_at_larger_aspect_ratio(summary: Table) -> None:
    delays = [
        time_at_risk(summary, "gen", lam, 1e-6) - time_at_risk(summary, "emp", lam, 1e-6)
        for lam in (0.3, 0.6, 0.9, 0.97)
    ]
    assert delays[0] > 0
    assert (np.diff(delays) > 0).all()


def test_b_the_peak_lies_between_interpolation_and_generalisation(summary: Table) -> None:
    times = {
        f"{event}_{side}": curve(summary, panel="transition", quantity=f"s_{event}", side=side)[1][
            0
        ]
        for event in ("peak", "grok")
        for side in ("emp", "gen")
    }
    assert times["grok_emp"] < times["peak_gen"] < times["grok_gen"]
    accuracy = {
        side: np.interp(
            times["peak_gen"],
            *curve(summary, panel="transition", quantity="accuracy", side=side, source="limit"),
        )
        for side in ("emp", "gen")
    }
    assert accuracy["emp"] > 0.999
    assert accuracy["gen"] == pytest.approx(0.5, abs=0.01)


def test_c_uncertainty_peaks_before_the_accuracy_threshold(summary: Table) -> None:
    chosen = {"panel": "transition", "side": "gen", "source": "limit"}
    s, eu = curve(summary, quantity="eu_nats", **chosen)
    peak = curve(summary, quantity="s_peak", **chosen)[1][0]
    grok = curve(summary, quantity="s_grok", **chosen)[1][0]
    assert s[np.argmax(eu)] == pytest.approx(peak, rel=0.05)
    assert eu.max() == pytest.approx(np.log(2), rel=1e-3)
    assert peak < grok
    accuracy = np.interp(grok, *curve(summary, quantity="accuracy", **chosen))
    assert accuracy == pytest.approx(GROK_ACCURACY, abs=5e-3)


def test_c_also_holds_in_finite_systems(summary: Table) -> None:
    chosen = {"panel": "transition", "side": "gen", "source": "finite"}
    s, eu = curve(summary, quantity="eu_nats", **chosen)
    reached = s[curve(summary, quantity="accuracy", **chosen)[1] > GROK_ACCURACY][0]
    assert s[np.argmax(eu)] < reached


def test_d_the_delay_grows_and_the_formulas_rank_as_stated(summary: Table) -> None:
    delays = {
        source: rows(summary, panel="delay", source=source)["value"]
        for source in ("limit", "leading", "lambert", "edge_newton", "loose")
    }
    assert (np.diff(delays["limit"]) > 0).all()
    assert delays["limit"][-1] > 1e5 * delays["limit"][0]
    assert (delays["leading"] > delays["lambert"]).all()
    assert (delays["lambert"] > delays["limit"]).all()
    assert delays["edge_newton"] == pytest.approx(delays["limit"], rel=5e-3)
    assert (delays["leading"] / delays["limit"]).max() < 2.5
    assert (delays["leading"] / delays["loose"]).max() > 25.0


def test_finite_systems_scatter_around_the_limit(summary: Table) -> None:
    finite = rows(summary, panel="delay", source="finite")
    limit = rows(summary, panel="delay", source="limit")
    expected = np.interp(finite["lam"], limit["lam"], np.log(limit["value"]))
    assert np.log(finite["value"]) == pytest.approx(expected, abs=0.35)
    assert (finite["q10"] <= finite["value"]).all()
    assert (finite["value"] <= finite["q90"]).all()
    s, risk = curve(summary, panel="dynamics", source="finite", side="gen", lam=0.6)
    exact = curve(summary, panel="dynamics", source="limit", side="gen", lam=0.6)[1]
    assert risk[s < 100] == pytest.approx(exact[s < 100], rel=0.1)


def test_the_caption_prints_the_parameters(model: LinearModel) -> None:
    caption = summary_caption(model, NUM_SEEDS)
    for text in ("n = 1000", "σ² = 1e-05", "τ² = 1", "Σ₀ = 100 I", "ε = 0.05", "5 exact finite"):
        assert text in caption
    assert "finite" not in summary_caption(model, 0)


def test_stated_times_of_the_summary(model: LinearModel) -> None:
    times = np.array(event_times(model, 0.9)[:4])
    assert times / 2 == pytest.approx([434, 1230, 708, 1579], abs=1)


def test_the_same_seed_gives_the_same_table(model: LinearModel) -> None:
    small = summary_model(50)
    first, again, other = (summary_table(small, 2, seed) for seed in (0, 0, 1))
    assert csv_text(first) == csv_text(again)
    assert csv_text(first) != csv_text(other)


def test_leading_order_is_the_worst_formula_on_the_usual_grid(errors: Table) -> None:
    usual = errors["eps_over_C0"] < 1e-3
    size = {
        name: np.abs(errors[f"relative_error_{name}"][usual])
        for name in ("leading", "lambert", "edge_newton_1", "edge_newton_3")
    }
    assert (errors["relative_error_leading"] > 0).all()
    assert (size["leading"] > size["lambert"]).all()
    assert (size["lambert"] > size["edge_newton_1"]).all()
    assert size["edge_newton_3"].max() < 0.01
    assert "leading order (paper)" in delay_error_caption(errors)


def test_the_summary_is_written_whole(tmp_path: Path, model: LinearModel, summary: Table) -> None:
    settings = dict(matplotlib.rcParams)
    caption = summary_caption(model, NUM_SEEDS)
    written = write_figure(summary_figure(summary), tmp_path, "figure", summary, caption)
    assert [path.suffix for path in written] == [".pdf", ".svg", ".png", ".csv", ".txt"]
    assert all(path.stat().st_size > 100 for path in written)
    assert sorted(tmp_path.iterdir()) == sorted(written)
    assert dict(matplotlib.rcParams) == settings


def test_a_figure_is_written_byte_for_byte_again(tmp_path: Path, errors: Table) -> None:
    written = [
        write_figure(delay_error_figure(errors), tmp_path / name, "figure", errors, "caption")
        for name in ("first", "again")
    ]
    for path, again in zip(*written, strict=True):
        assert path.read_bytes() == again.read_bytes()


def test_the_error_map_copes_with_formulas_without_value(errors: Table) -> None:
    gaps = dict(errors)
    gaps["relative_error_lambert"] = np.where(errors["lam"] > 0.5, np.nan, 0.5)
    figure = delay_error_figure(gaps)
    assert len(figure.axes) == 5


def test_csv_reads_back_as_the_table(summary: Table) -> None:
    read = list(csv.DictReader(csv_text(summary).splitlines()))
    assert ",".join(read[0]) == "panel,quantity,source,side,lam,s,value,q10,q90"
    values = np.array([float(row["value"]) for row in read])
    assert (values == summary["value"]).all()
    assert {row["q10"] for row in read if row["source"] == "limit"} == {""}


def test_a_place_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        write_figure(Figure(), tmp_path / "file" / "folder", "figure", {"x": [1.0]}, "caption")
