"""One query over a sweep, whatever state its runs are in."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch
from table_files import record, write_table

import epigrok
from epigrok.errors import UserError
from epigrok.evaluation import Evaluation, EvaluationRow
from epigrok.evaluation.schema import METRIC_NAMES, TABLES
from epigrok.records.directory import PARQUET, RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.positions import merge_positions
from epigrok.tables.sql_text import quoted_path

SWEEP = Sweep(
    name="grid",
    methods=("icl-tiny", "classic"),
    axes={"optim.lr": (1e-3, 2e-3)},
    seeds=(0, 1, 2, 3),
)
AWKWARD = "it's [a] *dir*?, key=1"


def metric_row(run: RunDirectory, step: int, split: str, posterior: str) -> EvaluationRow:
    """Accuracies that tell run, step and posterior apart; by context length, they rise from it."""
    config = run.config()
    num_samples = {"point": 1, "laplace": 2}.get(posterior, 1)
    accuracy = config.run_seed + 10 * step + 1000 * config.optim.lr * 1000 + num_samples
    summary = {"accuracy": accuracy, "accuracy_final": accuracy}
    if config.preset != "classic":
        summary |= {"relative_position": 0.5}
    by_length = {name: torch.arange(6.0) + config.run_seed for name in METRIC_NAMES}
    reliability = torch.zeros(3, 15)
    return EvaluationRow(split, posterior, num_samples, 4, summary, by_length, reliability)


def evaluation(run: RunDirectory, step: int) -> Evaluation:
    """Of the curve; the final one, at step 10, has four times the samples and six more of accuracy;
    the exact predictor comes at step 0, and not for the classic task."""
    splits = ("id_val",) if run.config().preset == "classic" else ("id_val", "ood_val")
    tracked = [(split, name) for split in splits for name in ("point", "laplace")]
    rows = [metric_row(run, step, split, name) for split, name in tracked]
    final = [
        replace(row, num_samples=8, summary=row.summary | {"accuracy": row.summary["accuracy"] + 6})
        if row.posterior == "laplace"
        else row
        for row in rows
    ]
    exact = [metric_row(run, 0, split, "oracle-generalising") for split in splits[1:]]
    return Evaluation(step, rows, final if step == 10 else [], exact if step == 0 else [])


def write_run(run: RunDirectory, steps: tuple[int, ...] = (0, 10)) -> None:
    record(run, *(evaluation(run, step) for step in steps))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SweepStore:
    """A finished sweep that nobody changes."""
    directory = tmp_path_factory.mktemp("store") / AWKWARD
    for run in prepare(directory, SWEEP).values():
        write_run(run)
        merge_positions(run.path)
        shutil.rmtree(run.path / "positions")
        run.mark_done()
    return open_sweep(directory)


def test_configurations_are_columns_with_dotted_names(store: SweepStore) -> None:
    query = """select preset, "optim.lr", count(*), list(distinct state) from runs
               where "task.kind" = 'OneParameterTask' group by all order by all"""
    assert store.sql(query).fetchall() == [
        ("icl-tiny", 1e-3, 4, ["done"]),
        ("icl-tiny", 2e-3, 4, ["done"]),
    ]
    types = store.sql("describe runs").fetchall()
    kind = {name: kind for name, kind, *_ in types}
    assert kind["evaluation.posteriors"] == "VARCHAR[]"
    assert kind["optim.betas"] == "DOUBLE[]"
    assert kind["num_steps"] == "BIGINT"


def test_median_and_band_over_seeds(store: SweepStore) -> None:
    found = store.median_and_band(
        "accuracy", by=["preset", "optim.lr"], split="id_val", posterior="point"
    )
    assert found.columns == ["preset", "optim.lr", "median", "lower", "upper", "count"]
    values = np.array([100 + 1000 + seed + 1 for seed in range(4)])
    lower, median, upper = np.quantile(values, [0.025, 0.5, 0.975])
    assert found.fetchall()[0] == pytest.approx(("classic", 1e-3, median, lower, upper, 4))
    assert len(found.fetchall()) == 4
    one_step = [
        store.median_and_band("accuracy", by="preset", split="id_val", posterior="point", step=step)
        for step in (10, np.int64(10))
    ]
    assert one_step[0].fetchall() == one_step[1].fetchall()
    for wrong in ("10", "first"):
        with pytest.raises(UserError, match="step must be a whole number"):
            store.median_and_band("accuracy", step=wrong)
    assert store.median_and_band("accuracy", split="").fetchall() == []


def test_splits_and_posteriors_are_never_mixed(store: SweepStore) -> None:
    found = store.median_and_band("accuracy", by=["preset"])
    assert found.columns[:3] == ["preset", "split", "posterior"]
    assert len(found.fetchall()) == 2 + 4


def test_the_last_step_is_the_final_evaluation_and_others_are_of_the_curve(
    store: SweepStore,
) -> None:
    chosen = {"by": ["run_id"], "split": "id_val", "posterior": "laplace"}
    last = store.median_and_band("accuracy", **chosen).fetchall()
    curve = store.median_and_band("accuracy", step=None, **chosen).fetchall()
    at_ten = store.median_and_band("accuracy", step=10, **chosen).fetchall()
    assert [row[-1] for row in last] == [1] * 16
    assert len(curve) == 2 * 16
    # Six more than the curve, which has fewer samples.
    assert [row[1] for row in last] == [row[1] + 6 for row in at_ten]
    by_run = {(run_id, step): median for run_id, step, median, *_ in curve}
    assert {run_id: median for run_id, median, *_ in at_ten} == {
        run_id: by_run[run_id, 10] for run_id, *_ in last
    }


def test_latest_is_the_final_evaluation_or_the_end_of_the_curve(tmp_path: Path) -> None:
    going_on, ended, resumed, queued = list(prepare(tmp_path, SWEEP).values())[:4]
    write_run(going_on, (0, 5))
    write_run(ended)
    # Killed after its last evaluation and set back to the checkpoint before.
    write_run(resumed, (0,))
    resumed.table("final").write_text("")
    query = """select run_id, step, max(num_samples), count(*) from {} where split = 'id_val'
               group by all order by all"""
    found = open_sweep(tmp_path)
    expected = {(going_on, 5, 2), (ended, 10, 8), (resumed, 0, 2)}
    for table, num_rows in (("latest", 2), ("latest_positions", 2 * 6)):
        rows = found.sql(query.format(table)).fetchall()
        assert set(rows) == {(run.path.name, *values, num_rows) for run, *values in expected}, table
    assert queued.path.name not in {row[0] for row in found.sql("from latest").fetchall()}


def test_exact_predictors_have_tables_of_their_own(store: SweepStore) -> None:
    for table, num_rows in (("exact", 8), ("exact_positions", 8 * 6)):
        found = store.sql(f"select step, split, posterior, count(*) from {table} group by all")
        assert found.fetchall() == [(0, "ood_val", "oracle-generalising", num_rows)]
    for table in ("metrics", "final", "latest", "positions", "latest_positions"):
        found = store.sql(f"select distinct posterior from {table} order by all").fetchall()
        assert found == [("laplace",), ("point",)], table


def test_results_stay_what_they_were_asked_for(store: SweepStore) -> None:
    first = store.median_and_band("accuracy", split="id_val", posterior="point")
    second = store.median_and_band("relative_position", split="id_val", posterior="point")
    assert first.fetchall()[0][0] > 100
    assert second.fetchall()[0][0] == 0.5


@pytest.mark.parametrize(
    "query",
    [
        "select run_id, preset from metrics join runs using (run_id)",
        "select * from (select * from metrics where step = 10) join runs using (run_id)",
        "with last as (from METRICS where step = 10) select * from last natural join runs",
        "pivot metrics on split using avg(accuracy) group by run_id",
        """select * from "metrics" where run_id in (select run_id from final)""",
        "describe final",
        "select 'final' as name, accuracy from metrics",
    ],
)
def test_any_query_finds_the_tables_it_names(query: str, store: SweepStore) -> None:
    assert store.sql(query).fetchall()


def test_columns_that_some_runs_lack_are_null_there(store: SweepStore) -> None:
    found = store.median_and_band("relative_position", by=["preset"], split="id_val", step=0)
    assert [row[0] for row in found.fetchall()] == ["icl-tiny", "icl-tiny"]


def test_context_lengths_come_from_positions(store: SweepStore) -> None:
    found = store.median_and_band("nll", by=["context_length"], split="id_val")
    assert [(row[0], row[2], row[5]) for row in found.fetchall()] == [
        (length, length - 1 + 1.5, 16) for length in range(1, 7) for _ in ("laplace", "point")
    ]


def test_what_is_not_a_seed_is_never_pooled(tmp_path: Path) -> None:
    run = next(iter(prepare(tmp_path, SWEEP).values()))
    write_run(run)
    write_table(run, "training", [{"step": 10, "loss": 0.5}])
    keys = {
        "step": 10,
        "split": "id_val",
        "posterior": "point",
        "num_samples": 1,
        "num_sequences": 8,
    }
    bins = [{"bin": k, "count": 4, "accuracy": k / 2} for k in range(3)]
    write_table(run, "calibration", [{**keys, **row} for row in bins])
    alone = open_sweep(run.path)
    lengths = alone.median_and_band("nll", table="positions", split="id_val")
    assert lengths.columns[:2] == ["posterior", "context_length"]
    assert {row[-1] for row in lengths.fetchall()} == {1}
    found = alone.median_and_band("accuracy", table="calibration").fetchall()
    assert [(row[2], row[-4], row[-1]) for row in found] == [(0, 0.0, 1), (1, 0.5, 1), (2, 1.0, 1)]
    assert alone.median_and_band("loss", table="training").fetchall() == [(0.5, 0.5, 0.5, 1)]
    with pytest.raises(UserError, match="no column 'split'"):
        alone.median_and_band("loss", table="training", split="id_val")


def test_evaluations_after_training_are_tables_too(tmp_path: Path) -> None:
    runs = prepare(tmp_path, SWEEP).values()
    assert open_sweep(tmp_path).sql("select * from evaluation").fetchall() == []
    for run in runs:
        keys = {"step": 10, "split": "id_val", "posterior": "point", "members": ""}
        noise = {"context_length": 6, "context_noise": 0.1, "accuracy": run.config().run_seed}
        write_table(run, "context_noise", [{**keys, **noise}])
    found = open_sweep(tmp_path).median_and_band(
        "accuracy", by=["preset", "context_noise"], split="id_val"
    )
    assert found.columns[:4] == ["preset", "context_noise", "posterior", "members"]
    assert found.fetchall() == [
        (name, 0.1, "point", "", 1.5, 0.0, 3.0, 8) for name in ("classic", "icl-tiny")
    ]


def test_unfinished_runs_are_there_and_can_be_left_out(tmp_path: Path) -> None:
    half, cut, empty, whole = list(prepare(tmp_path, SWEEP).values())[:4]
    write_run(whole)
    whole.mark_done()
    write_run(half, (0,))
    lines = whole.table("metrics").read_text().splitlines(keepends=True)
    cut.table("metrics").write_text("".join(lines[:3]) + lines[3][:40])
    store = open_sweep(tmp_path)
    query = "select run_id, count(*) from metrics group by run_id"
    counts = dict(store.sql(query).fetchall())
    assert counts == {half.path.name: 4, cut.path.name: 3, whole.path.name: 8}
    with_positions = {half.path.name, whole.path.name}
    found = store.sql("select distinct run_id from positions").fetchall()
    assert {run_id for (run_id,) in found} == with_positions
    states = dict(store.sql("select run_id, state from runs").fetchall())
    assert states[empty.path.name] == "queued"
    assert len(states) == 16
    done = open_sweep(tmp_path, done_only=True)
    assert done.sql("select distinct run_id from metrics").fetchall() == [(whole.path.name,)]


@pytest.mark.parametrize("table", TABLES)
def test_tables_have_their_schema_before_anything_was_written(
    table: str, prepared: SweepStore
) -> None:
    columns = [column.name for column in TABLES[table].columns]
    assert prepared.sql(f"from {table}").fetchall() == []
    found = prepared.columns(table)
    assert found[: 1 + len(columns)] == ["run_id", *columns]
    assert set(prepared.sql(f"from {table}").columns) == set(found)
    assert ("log_evidence" in found) == TABLES[table].has_facts


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> SweepStore:
    """A sweep of which no run has begun."""
    directory = tmp_path_factory.mktemp("prepared")
    prepare(directory, replace(SWEEP, seeds=(0,)))
    return open_sweep(directory)


def test_without_a_finished_run_there_are_no_rows(prepared: SweepStore) -> None:
    done = open_sweep(prepared.path, done_only=True)
    for table in ("runs", "metrics", "latest", "latest_positions"):
        assert done.sql(f"select run_id from {table}").fetchall() == []


def test_facts_of_few_rows_are_found_and_null_elsewhere(tmp_path: Path) -> None:
    older, newer = list(prepare(tmp_path, SWEEP).values())[:2]
    rows = [{"step": step, "split": "id_val", "posterior": "point"} for step in range(30)]
    write_table(older, "metrics", rows)
    query = """select num_fit_answers, prior_precision_is_at_bound, prior_precision + log_evidence
               from metrics order by prior_precision limit 2"""
    assert open_sweep(tmp_path).sql(query).fetchall() == [(None, None, None)] * 2
    rows[15] |= {"posterior": "laplace", "num_fit_answers": 40, "prior_precision": 1}
    rows[15] |= {"log_evidence": -0.5, "prior_precision_is_at_bound": False}
    write_table(newer, "metrics", rows)
    found = open_sweep(tmp_path).sql(query).fetchall()
    assert found == [(40, False, 0.5), (None, None, None)]
    assert open_sweep(tmp_path).sql("select log_evidence from evaluation").fetchall() == []


def test_positions_that_an_older_version_did_not_measure_are_null(tmp_path: Path) -> None:
    run = next(iter(prepare(tmp_path, SWEEP).values()))
    write_run(run)
    merge_positions(run.path)
    file = quoted_path(run.path / PARQUET)
    duckdb.sql(f"create or replace temp table older as select * exclude (total_se) from {file}")
    duckdb.sql(f"copy older to {file} (format parquet)")
    query = "select step, count(*), count(nll), count(total_se) from positions group by all"
    found = open_sweep(tmp_path).sql(f"{query} order by step").fetchall()
    assert found == [(0, 24, 24, 0), (10, 24, 24, 0)]


def test_a_run_of_an_older_version_is_listed_as_unreadable(tmp_path: Path) -> None:
    older, newer = list(prepare(tmp_path, SWEEP).values())[:2]
    (older.path / "run.json").unlink()
    store = open_sweep(tmp_path).of_runs([older.path.name, newer.path.name])
    query = """select run_id, state, "optim.lr" from runs order by state"""
    assert store.sql(query).fetchall() == [
        (newer.path.name, "queued", newer.config().optim.lr),
        (older.path.name, "unreadable", None),
    ]
    assert "prior_precision" in store.columns("metrics")


def test_some_runs_can_be_asked_by_themselves(store: SweepStore) -> None:
    chosen = [name for name, run in store.runs.items() if run.config().preset == "classic"][:2]
    some = store.of_runs(chosen)
    count = "select count(distinct run_id), count(*) from metrics"
    assert (some.sql(count).fetchall(), store.sql(count).fetchall()) == ([(2, 8)], [(16, 96)])
    assert len(some.sql("from runs").fetchall()) == 2


def test_mistakes_in_a_query_are_told(store: SweepStore) -> None:
    with pytest.raises(UserError, match="no column 'acuracy'; there are: accuracy"):
        store.median_and_band("acuracy")
    with pytest.raises(UserError, match=r"no column 'optim\.lrr'"):
        store.median_and_band("accuracy", by=["optim.lrr"])
    with pytest.raises(UserError, match="the query does not work"):
        store.sql("select nothing from metrics")
    with pytest.raises(UserError, match="no table named 'run'"):
        store.columns("run")


def test_values_are_quoted_not_executed(store: SweepStore) -> None:
    nasty = "x'; drop table runs; --"
    assert store.median_and_band("accuracy", split=nasty).fetchall() == []
    assert len(store.sql("select * from runs").fetchall()) == 16


def test_export_writes_one_file_with_everything(store: SweepStore, tmp_path: Path) -> None:
    file = tmp_path / "it's [all].parquet"
    for table in ("metrics", "latest_positions"):
        (number,) = store.sql(f"select count(*) from {table}").fetchall()[0]
        assert store.export(file, table) == number > 0
        query = """select count(*), count(distinct run_id), count(distinct "optim.lr"),
                       count(distinct state) from {}"""
        found = duckdb.sql(query.format(quoted_path(file))).fetchall()
        assert found == [(number, 16, 2, 1)]
        assert {path.name for path in tmp_path.iterdir()} == {file.name}


def test_one_run_is_asked_like_a_sweep(store: SweepStore) -> None:
    path = next(run.path for run in store.runs.values() if run.config().preset == "icl-tiny")
    assert epigrok.open_run(path).sql("select run_id from runs").fetchall() == [(path.name,)]
    assert len(epigrok.open_sweep(str(path)).sql("select * from metrics").fetchall()) == 8


def test_a_directory_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no runs in"):
        open_sweep(tmp_path)
    with pytest.raises(UserError, match="no directory"):
        open_sweep(tmp_path / "nowhere")


def test_asking_a_sweep_needs_no_torch(store: SweepStore) -> None:
    script = f"""import sys, epigrok
epigrok.open_sweep({str(store.path)!r}).median_and_band("accuracy").fetchall()
assert "torch" not in sys.modules and "numpy" not in sys.modules"""
    subprocess.run([sys.executable, "-c", script], check=True)
