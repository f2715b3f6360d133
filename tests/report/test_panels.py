"""Panels: curves within their frame, and numbers at every look."""

from pathlib import Path

from made_courses import announced_at, made_course, made_run, rising
from made_runs import make_sweep
from report_pages import Document
from table_files import append_rows

from epigrok.report import panels as drawing
from epigrok.report import write_report
from epigrok.report.panels import panels


def test_curves_begin_where_something_can_be_said_and_stay_in_the_frame() -> None:
    (panel,) = panels([made_course(rising(700), announced_at(800))], ["preset"])
    (accuracy,), (ratio,) = panel.lines["accuracy"], panel.lines["ratio"]
    points = [tuple(map(float, point.split(","))) for point in accuracy.split()]
    assert points[0] == (drawing.LEFT, drawing.BOTTOM)
    assert points[-1] == (drawing.RIGHT, drawing.TOP)
    # Two looks come before the training set is fitted.
    assert len(ratio.split()) == len(points) - 2


def test_every_look_shows_its_numbers_and_leaves_no_gap() -> None:
    (panel,) = panels([made_course(rising(700), announced_at(800))], ["preset"])
    spot = panel.spots[8]
    assert spot.heads == "step 800: generalised"
    assert spot.numbers == "accuracy 1.000 · ratio 0.50 · EU 82 % of its peak"
    assert panel.resting == spot
    for left, right in zip(panel.spots, panel.spots[1:]):
        assert abs(left.left + left.width - right.left) < 0.2


def test_labels_of_neighbouring_marks_lead_away_from_each_other() -> None:
    (panel,) = panels([made_course(rising(600), announced_at(700))], ["preset"])
    assert {mark.kind: mark.anchor for mark in panel.marks} == {
        "reached": "end",
        "announced": "start",
    }
    (early,) = panels([made_course(rising(100), announced_at(200))], ["preset"])
    assert {mark.anchor for mark in early.marks} == {"start"}


def test_runs_of_one_setting_are_told_apart_by_their_seeds() -> None:
    runs = [made_run("a"), made_run("b")]
    runs[1].config["run_seed"] = 7
    shown = panels([made_course(rising(700), run=run) for run in runs], ["preset"])
    assert [panel.title for panel in shown] == ["classic, seed 0", "classic, seed 7"]


def test_many_panels_show_fewer_looks_but_all_events(monkeypatch) -> None:
    monkeypatch.setattr(drawing, "_FEWEST_LOOKS", 2)
    monkeypatch.setattr(drawing, "_LOOKS_ON_PAGE", 2)
    (panel,) = panels([made_course(rising(700), announced_at(800))], ["preset"])
    steps = [int(spot.heads.split(":")[0].removeprefix("step ").replace(",", "")) for spot in
             panel.spots]  # fmt: skip
    assert steps == [0, 200, 600, 700, 800, 1000]


def test_panels_beyond_the_first_are_behind_a_fold(tmp_path: Path) -> None:
    num_runs = drawing.NUM_OPEN + 2
    make_sweep(tmp_path, generalised=[700] * num_runs, collapsed=[600] * num_runs)
    document = Document(write_report(tmp_path))
    assert "2 more, in the order of the runs" in document.text
    assert sum(values.get("class") == "panel" for _, values in document.elements) == num_runs


def test_the_legend_names_only_what_is_drawn(tmp_path: Path) -> None:
    (run,) = make_sweep(tmp_path, generalised=[700], collapsed=[600])
    assert "tolerance ratio" not in Document(write_report(tmp_path)).text
    append_rows(
        run.table("tolerance"),
        [{"step": 800, "split": "id_val", "state": "generalised", "tolerance_ratio": 0.9}],
    )
    run.mark_done()
    text = Document(write_report(tmp_path)).text
    assert "tolerance ratio, without labels" in text
    assert "The monitor needs no label of unseen data" in text
