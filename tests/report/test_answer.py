"""The page opens with what was found."""

from pathlib import Path

from made_runs import FITTED, PEAK, make_sweep
from own_split import give_own_split
from report_pages import Document

from epigrok.report import write_report
from epigrok.sweeps.description import Sweep, prepare


def test_the_headline_counts_the_runs_that_generalised(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 900, None], collapsed=[500, 1000, None])
    text = Document(write_report(tmp_path)).text
    assert "2 of 3 runs generalised to unseen inputs." in text
    assert "collapsed no later than accuracy arrived: laplace in 1 of 2 transitions." in text


def test_a_split_of_a_plugin_counts_like_any_other(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[700, None], collapsed=[500, None])
    for run in runs:
        give_own_split(run, instead_of="id_val")
    text = Document(write_report(tmp_path)).text
    assert "1 of 2 runs generalised to unseen inputs." in text
    assert "accuracy odd_cells" in text


def test_findings_state_medians_and_what_the_uncertainty_did(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 900, 800], collapsed=[500, 600, 700])
    text = Document(write_report(tmp_path)).text
    assert f"generalised, at step 800, {800 - FITTED} steps after the training set" in text
    assert f"peak 0.8 nats at {PEAK}; collapse at 600, 200 before accuracy" in text


def test_findings_count_a_run_once_whatever_posteriors_it_tracks(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[700, None, None], collapsed=[600, None, None])
    for run in runs[1:]:
        metrics = run.table("metrics")
        metrics.write_text(metrics.read_text().replace('"laplace"', '"laplace-exact"'))
        run.mark_done()
    text = Document(write_report(tmp_path)).text
    assert text.count("1 of 3 runs generalised") == 2


def test_a_collapse_without_generalisation_is_told(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, None], collapsed=[900, 500])
    text = Document(write_report(tmp_path)).text
    assert "collapse at 700, 200 after accuracy; also in 1 that did not generalise" in text


def test_a_sweep_that_has_not_begun_is_a_page_too(tmp_path: Path) -> None:
    prepare(tmp_path, Sweep(name="later", methods=("classic",)))
    text = Document(write_report(tmp_path)).text
    assert "No uncertainty measured yet in 1 run." in text
    assert "classic" in text
