"""Every figure can be drawn from a sweep, says what it shows, and fits its page."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from own_split import OWN_SPLIT, give_own_split
from written_runs import GRID, write_run

from epigrok.cli import main
from epigrok.errors import UserError
from epigrok.figures.catalogue import draw_all, draw_figure, figures
from epigrok.figures.drawn_figure import DrawnFigure
from epigrok.figures.style import COLUMN_WIDTH, TEXT_WIDTH, publication_style
from epigrok.figures.theory import draw_summary
from epigrok.figures.theory_delay_error import draw_delay_error
from epigrok.figures.theory_tolerance import draw_tolerance
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import SweepStore, open_sweep
from epigrok.theory.linear_model import summary_model

FROM_RUNS = [name for name in figures() if not name.startswith("theory-")]
_TIMES = "peaks at step 200 (1.6 nats) and is at 2.5 % of it when accuracy passes 0.95 (step 300 in"
_ENDS = "accuracy goes from 0.5 to 0.5, EU goes from 0.1 to 0.1, AU goes from 0.2 to 0.2."
# As `written_runs` has it by hand: medians over seeds 0, 1, 2, of which uncertainty is a multiple.
MEASURED = {
    "teaser": f"EU of laplace on ood_val {_TIMES}",
    "trajectory": f"EU of laplace on ood_val {_TIMES}",
    "tolerance": "ood_val was announced as generalised at step 100 in 3 of 3 runs; its ratio ends",
    "accuracy-heatmaps": "icl-paper-ivon, ood_val: accuracy from 0.36 to 0.96 (5 of 6 cells).",
    "uncertainty-heatmaps": "icl-paper, ood_val: total from 1.08 to 1.08 (6 of 6 cells).",
    "context-length": f"laplace on ood_val, between context length 1 and 32: {_ENDS}",
    "context-noise": f"laplace on ood_val, between context noise 0 and 1: {_ENDS}",
    "oracle-distance": "ood_val: relative position from +1.00 at most to -0.50 at the end.",
    "calibration": "Expected calibration error: icl-paper, training tasks T = 32, training "
    "fraction = 0.8: id_train 0.108, id_val 0.108",
}


THEORY = {
    "theory.draw_summary": cache(lambda *_: draw_summary(summary_model(), num_seeds=1)),
    "theory_tolerance.draw_tolerance": cache(lambda *_: draw_tolerance(50, num_seeds=0)),
    "theory_delay_error.draw_delay_error": cache(draw_delay_error),
}


@pytest.fixture(autouse=True)
def _theory_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theory has tests of its own, and drawing it takes most of the time."""
    for name, draw in THEORY.items():
        monkeypatch.setattr(f"epigrok.figures.{name}", draw)


@pytest.fixture(scope="module")
def drawn(store: SweepStore) -> dict[str, DrawnFigure]:
    return {name: draw_figure(name, store) for name in FROM_RUNS}


@pytest.fixture(scope="module")
def single_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("single")
    sweep = Sweep(name="one", methods=("icl-tiny",), overrides={"evaluation.posteriors": ["point"]})
    run = next(iter(prepare(path, sweep).values()))
    write_run(run)
    return run.path


@pytest.mark.parametrize("name", FROM_RUNS)
def test_every_axis_has_a_label_and_uncertainty_its_unit(
    name: str, drawn: dict[str, DrawnFigure]
) -> None:
    shown = [axes for axes in drawn[name].figure.axes if axes.axison]
    panels = [axes for axes in shown if axes.get_label() != "<colorbar>"]
    assert panels
    for axes in panels:
        place = axes.get_subplotspec()
        columns = [other for other in panels if other.get_subplotspec().colspan == place.colspan]
        rows = [other for other in panels if other.get_subplotspec().rowspan == place.rowspan]
        # An axis that panels share is labelled once.
        assert axes.get_xlabel() or any(other.get_xlabel() for other in columns)
        assert axes.get_ylabel() or any(other.get_ylabel() for other in rows)
    labels = [axes.get_ylabel() for axes in shown]
    uncertain = [text for text in labels if re.match("EU of|EU$|AU|EU \\(|symmetric KL", text)]
    assert all("(nats)" in text for text in uncertain)
    assert bool(uncertain) == (
        name not in ("teaser", "accuracy-heatmaps", "calibration", "tolerance")
    )


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DrawnFigure]:
    """Figures of one setting, as wide as a column."""
    path = tmp_path_factory.mktemp("narrow")
    sweep = Sweep(name="one", methods=("icl-paper-ivon",), overrides={"num_steps": 2000})
    write_run(next(iter(prepare(path, sweep).values())))
    store = open_sweep(path)
    return {name: draw_figure(name, store) for name in FROM_RUNS if "heatmaps" not in name}


@pytest.mark.parametrize("name", FROM_RUNS)
@pytest.mark.parametrize("width", [COLUMN_WIDTH, TEXT_WIDTH])
def test_nothing_sticks_out_of_a_figure(
    name: str, width: float, drawn: dict[str, DrawnFigure], narrow: dict[str, DrawnFigure]
) -> None:
    of_width = narrow if width == COLUMN_WIDTH else drawn
    if name not in of_width:
        pytest.skip("a map needs a grid, and is as wide as the page")
    figure = of_width[name].figure
    canvas = FigureCanvasAgg(figure)
    with publication_style():
        canvas.draw()
        extent = figure.get_tightbbox(canvas.get_renderer())
    assert figure.get_figwidth() == (COLUMN_WIDTH if name == "teaser" else width)
    width, height = figure.get_size_inches()
    tolerance = 0.02
    assert extent.x0 > -tolerance
    assert extent.y0 > -tolerance
    assert extent.x1 < width + tolerance
    assert extent.y1 < height + tolerance


@pytest.mark.parametrize("name", FROM_RUNS)
def test_a_figure_has_a_legend_its_data_and_a_caption_with_the_measured_numbers(
    name: str, drawn: dict[str, DrawnFigure]
) -> None:
    figure = drawn[name]
    assert figure.name == name
    assert [text.get_text() for text in figure.figure.legends[0].get_texts()]
    assert MEASURED[name] in figure.caption
    assert "\n" not in figure.title + figure.caption
    lengths = {len(values) for values in figure.table.values()}
    assert len(lengths) == 1
    assert lengths.pop() > 5


def test_a_split_of_a_plugin_is_drawn_and_explained_in_every_figure(tmp_path: Path) -> None:
    axes = {"task.num_base_tasks": (8, 16), "task.train_fraction": (0.5, 0.8)}
    sweep = Sweep(name="grid", methods=("icl-paper",), axes=axes, overrides={"num_steps": 2000})
    for run in prepare(tmp_path, sweep).values():
        write_run(run)
        give_own_split(run, instead_of="ood_val")
    store = open_sweep(tmp_path)
    for name in FROM_RUNS:
        figure = draw_figure(name, store)
        assert "ood_val" not in {*figure.table.get("split", ()), *figure.caption.split()}
        if name == "teaser":
            assert "held-out split odd_cells" in figure.caption
            continue
        assert OWN_SPLIT.name in figure.table["split"]
        assert "odd_cells, cells of odd sums" in figure.caption
    # It has tasks that training showed, so the exact memoriser is its floor.
    floors = draw_figure("context-length", store).table
    of_split = dict(zip(floors["split"], floors["posterior"], strict=True))
    assert of_split[OWN_SPLIT.name] == "oracle-memorising"


def test_what_cannot_be_drawn_is_named_with_the_reason(single_run: Path) -> None:
    drawn, missing = draw_all(open_sweep(single_run))
    assert {figure.name for figure in drawn} | missing.keys() == figures().keys()
    assert {figure.name for figure in drawn} >= {"oracle-distance", "theory-summary"}
    assert "differ in exactly two fields" in missing["accuracy-heatmaps"]
    assert "icl-tiny: nothing" in missing["uncertainty-heatmaps"]
    assert "--evaluation.posteriors" in missing["trajectory"]
    assert "tracks epistemic uncertainty" in missing["teaser"]


def test_a_figure_that_fails_costs_no_other_and_is_named(
    single_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> list[object]:
        raise ValueError("not enough values")

    monkeypatch.setattr("epigrok.figures.oracle_distance.shown_settings", fails)
    with pytest.warns(UserWarning, match="oracle-distance failed with ValueError: not enough"):
        drawn, missing = draw_all(open_sweep(single_run))
    assert missing["oracle-distance"] == "ValueError: not enough values"
    assert {figure.name for figure in drawn} >= {"tolerance", "theory-summary"}


def test_only_figures_of_runs_name_the_conditions_that_chose_them(single_run: Path) -> None:
    found, _ = draw_all(open_sweep(single_run, where=["preset=icl-tiny"]))
    named = {figure.name for figure in found if "Only runs with preset" in figure.caption}
    assert named == {figure.name for figure in found if not figure.name.startswith("theory-")}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("context-noise", "epigrok evaluate RUN --series context-noise"),
        ("context-length", "epigrok evaluate RUN --series context-length"),
        ("calibration", "a run writes them at its last step"),
        ("tolerance", "epigrok monitor RUN"),
    ],
)
def test_missing_data_is_told_with_what_makes_it(name: str, message: str, tmp_path: Path) -> None:
    runs = list(prepare(tmp_path, GRID).values())
    write_run(runs[0])
    for table in ("context_noise", "context_length", "calibration", "tolerance"):
        runs[0].table(table).unlink()
    runs[0].mark_done()
    with pytest.raises(UserError, match=message):
        draw_figure(name, open_sweep(tmp_path))


def test_a_classic_run_has_no_exact_predictors(tmp_path: Path) -> None:
    run = next(iter(prepare(tmp_path, Sweep(name="one", methods=("classic",))).values()))
    run.table("metrics").write_text(
        '{"step": 0, "split": "id_val", "posterior": "point", "num_samples": 1,'
        ' "num_sequences": 1, "accuracy_final": 0.5, "epistemic_final": 0.0}\n'
    )
    with pytest.raises(UserError, match="exact predictors to compare with"):
        draw_figure("oracle-distance", open_sweep(tmp_path))


def test_a_run_without_point_and_sampled_posterior_can_be_drawn(tmp_path: Path) -> None:
    overrides = {"evaluation.posteriors": ["laplace-probit"]}
    sweep = Sweep(name="one", methods=("icl-tiny",), overrides=overrides)
    write_run(next(iter(prepare(tmp_path, sweep).values())))
    found, _ = draw_all(open_sweep(tmp_path))
    (distance,) = [figure for figure in found if figure.name == "oracle-distance"]
    assert set(distance.table["posterior"]) == {"laplace-probit"}


def test_an_unknown_figure_is_answered_with_those_that_exist(store: SweepStore) -> None:
    with pytest.raises(UserError, match=r"no figure named 'teasr'; there are: .*trajectory"):
        draw_figure("teasr", store)


@pytest.mark.usefixtures("unrendered")
def test_the_command_writes_all_beside_the_runs_and_says_what_is_missing(
    single_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "all", str(single_run)]) == 0
    output = capsys.readouterr().out
    assert (single_run / "figures" / "oracle-distance.pdf").exists()
    assert "teaser could not be drawn: no run in" in output
    assert not (single_run / "figures" / "teaser.pdf").exists()


def test_mistakes_are_one_sentence(
    grid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "pie", str(grid)]) == 2
    assert main(["figure", "all", str(tmp_path / "nowhere")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert "no figure named 'pie'" in errors[0]


def test_drawing_needs_no_torch(grid: Path) -> None:
    script = f"""import sys
from epigrok.tables import open_sweep
from epigrok.figures.catalogue import draw_figure
draw_figure("trajectory", open_sweep({str(grid)!r}))
assert "torch" not in sys.modules"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_figure_is_drawn_from_a_run_a_sweep_or_their_directory(grid: Path) -> None:
    run = next(iter(open_sweep(grid).runs.values()))
    captions = {
        draw_figure("trajectory", source).caption
        for source in (run, run.path, str(run.path), open_sweep(run.path))
    }
    assert len(captions) == 1
    of_sweep = draw_figure("trajectory", grid)
    assert of_sweep.caption not in captions
    assert of_sweep._repr_png_().startswith(b"\x89PNG")
    assert repr(of_sweep).startswith("DrawnFigure('trajectory': ")
