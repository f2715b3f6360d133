"""Metrics by context length, merged when a run is done."""

import shutil
from pathlib import Path

import pytest
import torch
from table_files import record

from epigrok.evaluation import Evaluation, EvaluationRow
from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.records.directory import PARQUET, RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import open_sweep
from epigrok.tables.positions import merge_positions


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (run,) = prepare(tmp_path / "it's", Sweep(name="s", methods=("icl-tiny",))).values()
    values = {name: torch.tensor([0.5, float("nan"), 0.25]) for name in METRIC_NAMES}
    row = EvaluationRow("id_val", "point", 1, 4, {}, values, torch.zeros(3, 15))
    record(run, Evaluation(0, [row], exact=[row]), Evaluation(10, [row], final=[row]))
    return run


def asked(run: RunDirectory) -> dict[str, list[tuple[object, ...]]]:
    tables = ("positions", "final_positions", "exact_positions", "latest_positions")
    store = open_sweep(run.path)
    query = "select step, context_length, nll, num_samples from {} order by all"
    return {table: store.sql(query.format(table)).fetchall() for table in tables}


def test_small_files_and_the_merged_table_answer_alike(run: RunDirectory) -> None:
    before = asked(run)
    both = [(0, 1, 0.5, 1), (0, 3, 0.25, 1), (10, 1, 0.5, 1), (10, 3, 0.25, 1)]
    assert before == {
        "positions": both,
        "final_positions": both[2:],
        "exact_positions": both[:2],
        "latest_positions": both[2:],
    }
    merge_positions(run.path)
    assert (run.path / PARQUET).exists()
    assert asked(run) == before


def test_without_a_database_library_the_files_stay_and_can_be_asked(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epigrok.tables.positions.find_spec", lambda _: None)
    merge_positions(run.path)
    run.mark_done()
    assert not (run.path / PARQUET).exists()
    assert len(asked(run)["positions"]) == 4


def test_a_run_without_evaluations_gets_no_table(tmp_path: Path) -> None:
    merge_positions(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_names_that_differ_in_capitals_alone_are_two_runs(tmp_path: Path) -> None:
    for name, value in (("Run", 0.5), ("run", 0.75)):
        (run,) = prepare(tmp_path / f"of {name}", Sweep(name="s", methods=("icl-tiny",))).values()
        values = {metric: torch.tensor([value]) for metric in METRIC_NAMES}
        row = EvaluationRow("id_val", "point", 1, 4, {}, values, torch.zeros(3, 15))
        record(run, Evaluation(0, [row]))
        run.path.rename(tmp_path / name)
        shutil.rmtree(tmp_path / f"of {name}")
    found = open_sweep(tmp_path).sql("select run_id, nll from positions order by run_id")
    assert found.fetchall() == [("Run", 0.5), ("run", 0.75)]
