"""What docs/sweeps.md and docs/uncertainty.md show works."""

import json
import re
from math import log
from pathlib import Path

import pytest
from table_files import append_rows

from epigrok.cli import COMMANDS
from epigrok.config import preset, presets
from epigrok.config.posterior import BELIEVES_CLEAN, ORACLES, parse_posterior
from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.posteriors.kinds import posterior_kinds
from epigrok.sweeps.description import Sweep, prepare, runs_of, sweep_from_json
from epigrok.sweeps.description_files import read_sweep
from epigrok.sweeps.shipped import find_sweep
from epigrok.tables import SweepStore, open_sweep

DOCS = Path(__file__).parents[2] / "docs"
TEXT, UNCERTAINTY = ((DOCS / name).read_text() for name in ("sweeps.md", "uncertainty.md"))
QUERIES = re.findall(r"```sql\n(.*?)```", TEXT + UNCERTAINTY, re.DOTALL)


def query_with(column: str) -> str:
    (query,) = (query for query in QUERIES if f"as {column}" in query)
    return query


@pytest.fixture
def store(tmp_path: Path) -> SweepStore:
    """Two runs of icl-medium, p = 29, with the exact predictor."""
    for run in prepare(tmp_path, Sweep(name="s", methods=("icl-medium",), seeds=(0, 1))).values():
        num_steps = run.config().num_steps
        keys = {"split": "ood_val", "num_samples": 1}
        scores = {"epistemic_final": 1.0, "epistemic_se_final": 0.1, "kl_generalising_final": 0.5}
        for step in (0, num_steps):
            seconds = {"step": step, "seconds_training": 1.0, "seconds_evaluating": 1.0}
            append_rows(run.table("timings"), [seconds])
            rows = [
                {"step": step, **keys, **scores, "accuracy_final": step / num_steps, "posterior": p}
                for p in ("point", "laplace")
            ]
            append_rows(run.table("metrics"), rows)
        append_rows(run.table("final"), rows)
        oracle = {"step": 0, **keys, "posterior": "oracle-generalising", "total_final": 0.25}
        append_rows(run.table("exact"), [oracle])
    return open_sweep(tmp_path)


def test_the_examples_are_one_sweep(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    sweep = sweep_from_json(json.loads(example))
    assert len(runs_of(sweep)) == 2 * 3 * 2 * 4
    (in_toml,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "sweep.toml").write_text(in_toml)
    assert read_sweep(tmp_path / "sweep.toml") == sweep


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_answer(query: str, store: SweepStore) -> None:
    assert len(store.sql(query).fetchall()) == 2


def test_uncertainty_as_a_share_of_the_most_that_the_classes_allow(store: SweepStore) -> None:
    found = store.sql(query_with("share_of_ln_p")).fetchall()
    assert [row[-2:] for row in found] == [pytest.approx((1.0 / log(29), 0.1 / log(29)))] * 2
    tasks = [preset(name).task for name in presets()]
    assert all(task.modulus == task.vocabulary_size for task in tasks)


def test_task_misfit_and_weights_are_told_apart(store: SweepStore) -> None:
    found = store.sql(query_with("weight_uncertainty")).fetchall()
    assert [row[-3:] for row in found] == [(0.25, 0.5, 1.0)] * 2


def test_every_row_of_an_exact_predictor_is_explained() -> None:
    names = [name + belief for name in ORACLES for belief in ("", BELIEVES_CLEAN)]
    assert all(f"`{name}`" in UNCERTAINTY for name in names)


def test_what_the_controls_leave_out_is_said() -> None:
    runs = runs_of(find_sweep("controls")).values()
    tracked = {parse_posterior(name).kind for run in runs for name in run.evaluation.posteriors}
    assert tracked == {"point", "weight-noise", "laplace", "ivon", "ivon-isotropic"}
    left_out = (DOCS / "results/signs.md").read_text().partition("The sweep leaves out")[2]
    assert all(name in left_out for name in ("laplace-probit", "laplace-exact", "ensemble"))


def test_every_command_it_names_exists() -> None:
    assert len(QUERIES) == 5
    assert set(re.findall(r"^epigrok (\w+)", TEXT, re.MULTILINE)) <= set(COMMANDS)


def test_every_column_is_explained() -> None:
    columns = set(UNCERTAINTY.partition("## Columns")[2].replace("`", " ").split())
    facts = {fact.name for kind in posterior_kinds().values() for fact in kind.facts}
    assert {"prior_precision", "log_evidence"} <= facts
    assert columns >= {*METRIC_NAMES, *facts}
