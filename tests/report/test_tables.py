"""Tables of the page, and their files."""

from pathlib import Path

from made_runs import FITTED, PEAK, announce, make_sweep
from report_pages import Document, rows_of
from written_runs import write_grid

from epigrok.report import write_report
from epigrok.sweeps.description import Sweep, prepare


def test_the_table_of_times_says_how_many_runs_a_median_stands_for(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 900, None], collapsed=[None, None, None])
    text = Document(write_report(tmp_path)).text
    assert f"classic id_val laplace 3 {FITTED} 800 (2 of 3) {PEAK} – 500 (2 of 3) –" in text


def test_csv_files_hold_every_run(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[700, None], collapsed=[600, None])
    folder = write_report(tmp_path).parent
    times = [row for row in rows_of(folder / "grokking-times.csv") if row["split"] == "id_val"]
    assert {row["run_id"]: (row["generalised_step"], row["lead_of_collapse"]) for row in times} == {
        runs[0].path.name: ("700", "100"),
        runs[1].path.name: ("", ""),
    }
    assert [row["accuracy_final_id_val"] for row in rows_of(folder / "runs.csv")] == ["1.0", "0.0"]


def test_a_run_that_failed_or_has_not_begun_is_listed(tmp_path: Path) -> None:
    failed, damaged, _ = make_sweep(tmp_path, [None, None, 800], [None, None, 600])
    (failed.path / "DONE").unlink()
    failed.write_status(state="failed", step=100, reason="the loss is not finite")
    (damaged.path / "config.json").write_text("{")
    prepare(tmp_path, Sweep(name="later", methods=("classic",), seeds=(7,)))
    text = Document(write_report(tmp_path)).text
    assert "1 failed 1 unreadable 1 queued 1 done" in text
    assert "failed 100 / 1,000 – – – the loss is not finite" in text
    assert "is not valid JSON" in text
    assert (
        "so far, with 1 of 2 runs done, 1 of 2 runs generalised" in text.lower()
    )  # a damaged configuration belongs to no setting


def test_tables_show_settings_under_the_names_that_figures_use(tmp_path: Path) -> None:
    write_grid(tmp_path)
    text = Document(write_report(tmp_path)).text
    assert "preset training tasks T training fraction split posterior runs" in text
    assert "icl-paper 32 0.3 id_val laplace 3" in text
    assert "task.num_base_tasks 8, 16" in text


def test_settings_with_several_runs_are_counted(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[600, 700, None], collapsed=[500, 500, None])
    for run, step in zip(runs, [700, 900, None], strict=True):
        announce(run, step)
    text = Document(write_report(tmp_path)).text
    assert "classic unseen inputs 3 2 of 3 650 2 of 2 150 0 of 1 0" in text


def test_posteriors_are_judged_by_when_their_uncertainty_collapsed(tmp_path: Path) -> None:
    make_sweep(tmp_path, [700, 900, 800, None, None], [500, 1000, None, 500, None])
    text = Document(write_report(tmp_path)).text
    # Three transitions: in time, later, not at all; one of two others collapsed too.
    assert "laplace 3 1 1 1 1 of 2" in text
