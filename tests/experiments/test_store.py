"""One query over a sweep, whatever state its runs are in."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

import epigrok
from epigrok.cli import main
from epigrok.errors import UserError
from epigrok.evaluation import METRICS, EvaluationRow
from epigrok.experiments import SweepStore, open_sweep
from epigrok.experiments.last_rows import last_step_lines
from epigrok.experiments.position_shards import merge_positions
from epigrok.experiments.positions import write_positions
from epigrok.experiments.run_files import RunDirectory
from epigrok.experiments.sweep import Sweep, prepare

SWEEP = Sweep(
    name="grid",
    methods=("icl-tiny", "classic"),
    axes={"optim.lr": (1e-3, 2e-3)},
    seeds=(0, 1, 2, 3),
)
AWKWARD = "it's [a] *dir*?, key=1"


def write_rows(run: RunDirectory, table: str, rows: list[dict[str, object]]) -> None:
    run.table(table).write_text("".join(json.dumps(row) + "\n" for row in rows))


def metric_rows(run: RunDirectory) -> list[dict[str, object]]:
    """Accuracies that tell run, step, split and posterior apart; no oracle for the classic task."""
    config = run.config()
    is_classic = config.preset == "classic"
    rows: list[dict[str, object]] = []
    for step in (0, 10):
        for split in ("id_val", *(() if is_classic else ("ood_val",))):
            samples = [("point", 1), ("laplace", 2)] + [("laplace", 8)] * (step == 10)
            for posterior, num_samples in samples:
                row = {"step": step, "split": split, "posterior": posterior}
                accuracy = config.run_seed + 10 * step + 1000 * config.optim.lr * 1000
                rows.append({**row, "num_samples": num_samples, "accuracy": accuracy + num_samples})
                if not is_classic:
                    rows[-1]["relative_position"] = 0.5
    return rows


def positions_of(run: RunDirectory, step: int) -> None:
    values = {name: torch.arange(6.0) + run.config().run_seed for name in METRICS}
    row = EvaluationRow("id_val", "point", 1, 4, {}, values, torch.zeros(3, 15))
    write_positions(run.path, step, [row])


@pytest.fixture
def store(tmp_path: Path) -> SweepStore:
    directory = tmp_path / AWKWARD
    runs = prepare(directory, SWEEP)
    for run in runs.values():
        write_rows(run, "metrics", metric_rows(run))
        positions_of(run, 0)
        positions_of(run, 10)
        merge_positions(run.path)
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


def test_a_step_evaluated_twice_counts_once(store: SweepStore) -> None:
    chosen = {"by": ["run_id"], "split": "id_val", "posterior": "laplace"}
    last = store.median_and_band("accuracy", **chosen)
    curve = store.median_and_band("accuracy", step=None, **chosen)
    at_ten = store.median_and_band("accuracy", step=10, **chosen)
    assert [row[-1] for row in last.fetchall()] == [1] * 16
    assert [row[1] % 1 for row in last.fetchall()] == [0] * 16
    (final,) = store.sql("select max(accuracy) from metrics where num_samples = 8").fetchall()[0:1]
    assert max(row[1] for row in last.fetchall()) == final[0]
    assert at_ten.fetchall() == last.fetchall()
    assert len(curve.fetchall()) == 32
    assert max(row[2] for row in curve.fetchall()) == final[0] - 6


def test_results_stay_what_they_were_asked_for(store: SweepStore) -> None:
    first = store.median_and_band("accuracy", split="id_val", posterior="point")
    second = store.median_and_band("relative_position", split="id_val", posterior="point")
    assert first.fetchall()[0][0] > 100
    assert second.fetchall()[0][0] == 0.5


def test_what_is_only_known_at_an_earlier_step_is_found_there(store: SweepStore) -> None:
    path = store.path / str(store.sql("select min(run_id) from runs").fetchall()[0][0])
    table = path / "metrics.jsonl"
    oracle = {"step": 0, "split": "id_val", "posterior": "oracle-generalising", "accuracy": 1.0}
    table.write_text(json.dumps(oracle) + "\n" + table.read_text())
    found = store.median_and_band("accuracy", split="id_val", posterior="oracle-generalising")
    assert found.fetchall() == [(1.0, 1.0, 1.0, 1)]


@pytest.mark.parametrize("width", [1, 5000, 50_000])
def test_the_last_rows_are_read_from_the_end_of_a_file(width: int, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text("")
    assert last_step_lines(file) == []
    rows = [
        {"step": step, "number": number, "text": "x" * width}
        for step in (0, 10, 20)
        for number in range(9)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for ending in ("", '{"step": 30, "num'):
        file.write_text(text + ending)
        assert [json.loads(line) for line in last_step_lines(file)] == rows[-9:]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:9]))
    assert len(last_step_lines(file)) == 9


def test_columns_that_some_runs_lack_are_null_there(store: SweepStore) -> None:
    found = store.median_and_band("relative_position", by=["preset"], split="id_val", step=0)
    assert [row[0] for row in found.fetchall()] == ["icl-tiny", "icl-tiny"]


def test_context_lengths_come_from_positions(store: SweepStore) -> None:
    found = store.median_and_band("nll", by=["context_length"], split="id_val")
    assert [(row[0], row[2], row[5]) for row in found.fetchall()] == [
        (length, length - 1 + 1.5, 16) for length in range(1, 7)
    ]


def test_what_is_not_a_seed_is_never_pooled(store: SweepStore) -> None:
    (run, *_) = store._runs.values()
    write_rows(run, "training", [{"step": 10, "loss": 0.5}])
    keys = {"step": 10, "split": "id_val", "posterior": "point", "num_samples": 1, "num_rows": 8}
    bins = [{"bin": k, "count": 4, "accuracy": k / 2} for k in range(3)]
    write_rows(run, "calibration", [{**keys, **row} for row in bins])
    alone = open_sweep(run.path)
    lengths = alone.median_and_band("nll", table="positions", split="id_val")
    assert lengths.columns[:2] == ["posterior", "context_length"]
    assert {row[-1] for row in lengths.fetchall()} == {1}
    found = alone.median_and_band("accuracy", table="calibration").fetchall()
    assert [(row[2], row[-4], row[-1]) for row in found] == [(0, 0.0, 1), (1, 0.5, 1), (2, 1.0, 1)]
    assert alone.median_and_band("loss", table="training").fetchall() == [(0.5, 0.5, 0.5, 1)]
    with pytest.raises(UserError, match="no column 'split'"):
        alone.median_and_band("loss", table="training", split="id_val")


def test_a_run_resumed_by_a_version_with_more_metrics_keeps_all_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = next(iter(prepare(tmp_path, SWEEP).values()))
    with monkeypatch.context() as older:
        fewer = tuple(name for name in METRICS if name != "total_se")
        older.setattr("epigrok.experiments.positions.METRICS", fewer)
        positions_of(run, 0)
    positions_of(run, 10)
    query = """select step, count(*), count(total_se) filter (not isnan(total_se)) from positions
               group by step order by step"""
    assert open_sweep(tmp_path).sql(query).fetchall() == [(0, 6, 0), (10, 6, 6)]
    merge_positions(run.path)
    run.mark_done()
    assert open_sweep(tmp_path).sql(query).fetchall() == [(0, 6, 0), (10, 6, 6)]


def test_evaluations_after_training_are_tables_too(store: SweepStore) -> None:
    assert store.sql("select * from evaluation").fetchall() == []
    for run in store._runs.values():
        keys = {"step": 10, "split": "id_val", "posterior": "point", "num_samples": 1}
        noise = {"context_length": 6, "context_noise": 0.1, "accuracy": run.config().run_seed}
        write_rows(run, "context-noise", [{**keys, **noise}])
    found = store.median_and_band("accuracy", by=["preset", "context_noise"], split="id_val")
    assert found.fetchall() == [
        (name, 0.1, "point", 1.5, 0.0, 3.0, 8) for name in ("classic", "icl-tiny")
    ]


def test_unfinished_runs_are_there_and_can_be_left_out(tmp_path: Path) -> None:
    half, cut, empty, whole = list(prepare(tmp_path, SWEEP).values())[:4]
    rows = metric_rows(whole)
    write_rows(whole, "metrics", rows)
    whole.mark_done()
    write_rows(half, "metrics", rows[:1])
    positions_of(half, 0)
    text = "".join(json.dumps(row) + "\n" for row in rows[:3])
    cut.table("metrics").write_text(text + json.dumps(rows[3])[:40])
    store = open_sweep(tmp_path)
    query = "select run_id, count(*) from metrics group by run_id"
    counts = dict(store.sql(query).fetchall())
    assert counts == {half.path.name: 1, cut.path.name: 3, whole.path.name: len(rows)}
    assert store.sql("select distinct run_id from positions").fetchall() == [(half.path.name,)]
    states = dict(store.sql("select run_id, state from runs").fetchall())
    assert states[empty.path.name] == "queued"
    assert len(states) == 16
    done = open_sweep(tmp_path, done_only=True)
    assert done.sql("select distinct run_id from metrics").fetchall() == [(whole.path.name,)]


def test_tables_exist_before_anything_was_written(tmp_path: Path) -> None:
    prepare(tmp_path, SWEEP)
    for name in ("metrics", "training", "timings", "calibration", "positions"):
        assert open_sweep(tmp_path).sql(f"select step from {name}").fetchall() == []
    assert open_sweep(tmp_path, done_only=True).sql("select * from runs").fetchall() == []


def test_a_column_that_only_later_runs_have_is_found(tmp_path: Path) -> None:
    runs = list(prepare(tmp_path, SWEEP).values())
    for run in runs:
        write_rows(run, "training", [{"step": 1, "loss": 1}])
    write_rows(runs[-1], "training", [{"step": 1, "loss": 0.5, "spread": 2.5, "note": "x"}])
    found = open_sweep(tmp_path).sql("select sum(spread), max(note), min(loss) from training")
    assert found.fetchall() == [(2.5, "x", 0.5)]


def test_facts_of_few_rows_are_found_and_null_in_tables_of_older_runs(tmp_path: Path) -> None:
    older, newer = list(prepare(tmp_path, SWEEP).values())[:2]
    rows = [{"step": step, "posterior": "point", "text": "x" * 999} for step in range(30)]
    write_rows(older, "metrics", rows)
    query = """select num_fit_answers, prior_precision_is_at_bound, prior_precision + log_evidence
               from metrics order by prior_precision limit 2"""
    assert open_sweep(tmp_path).sql(query).fetchall() == [(None, None, None)] * 2
    rows[15] |= {"posterior": "laplace", "num_fit_answers": 40, "prior_precision": 1}
    rows[15] |= {"log_evidence": -0.5, "prior_precision_is_at_bound": False}
    write_rows(newer, "metrics", rows)
    found = open_sweep(tmp_path).sql(query).fetchall()
    assert found == [(40, False, 0.5), (None, None, None)]
    assert open_sweep(tmp_path).sql("select log_evidence from evaluation").fetchall() == []


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


def test_export_writes_one_file_with_everything(
    store: SweepStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "it's [all].parquet"
    assert main(["export", str(store.path), str(file)]) == 0
    (number,) = store.sql("select count(*) from metrics").fetchall()[0]
    assert f"{number} rows" in capsys.readouterr().out
    quoted = str(file).replace("'", "''").replace("[", "[[]")
    query = (
        f"""select count(*), count(distinct run_id), count(distinct "optim.lr") from '{quoted}'"""
    )
    assert duckdb.sql(query).fetchall() == [(number, 16, 2)]
    assert {path.name for path in tmp_path.iterdir()} == {AWKWARD, file.name}
    assert main(["export", str(store.path), str(tmp_path / "x.csv")]) == 2
    assert main(["export", str(tmp_path / "nowhere"), str(file)]) == 2
    assert main(["export", str(store.path), "/proc/x.parquet"]) == 2


def test_one_run_is_asked_like_a_sweep(store: SweepStore) -> None:
    path = store.path / str(store.sql("select min(run_id) from runs").fetchall()[0][0])
    assert epigrok.open_run(path).sql("select run_id from runs").fetchall() == [(path.name,)]
    assert epigrok.open_sweep(str(path)).sql("select * from metrics").fetchall()


def test_a_directory_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no runs in"):
        open_sweep(tmp_path)
    with pytest.raises(UserError, match="no directory"):
        open_sweep(tmp_path / "nowhere")


def test_asking_a_sweep_needs_no_torch(tmp_path: Path) -> None:
    prepare(tmp_path, SWEEP)
    script = f"""import sys, epigrok
epigrok.open_sweep({str(tmp_path)!r}).median_and_band("step").fetchall()
assert "torch" not in sys.modules"""
    subprocess.run([sys.executable, "-c", script], check=True)
