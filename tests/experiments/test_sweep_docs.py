"""What docs/sweeps.md shows works."""

import json
import re
from pathlib import Path

import pytest

from epigrok.cli import COMMANDS
from epigrok.experiments import open_sweep
from epigrok.experiments.sweep import Sweep, prepare, runs_of, sweep_from_json
from epigrok.files import append_json_lines

TEXT = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)


def test_the_example_is_a_sweep() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert len(runs_of(sweep_from_json(json.loads(example)))) == 2 * 3 * 2 * 4


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_answer(query: str, tmp_path: Path) -> None:
    for run in prepare(tmp_path, Sweep(name="s", methods=("icl-medium",), seeds=(0, 1))).values():
        for step in (0, 10):
            keys = {"step": step, "split": "ood_val", "num_samples": 1}
            scores = {"accuracy_final": step / 10, "epistemic_final": 1.0}
            rows = [{**keys, **scores, "posterior": name} for name in ("point", "laplace")]
            append_json_lines(run.table("metrics"), rows)
            seconds = {"step": step, "seconds_training": 1.0, "seconds_evaluating": 1.0}
            append_json_lines(run.table("timings"), [seconds])
    assert len(open_sweep(tmp_path).sql(query).fetchall()) == 2


def test_every_command_it_names_exists() -> None:
    assert len(QUERIES) == 3
    assert set(re.findall(r"^epigrok (\w+)", TEXT, re.MULTILINE)) <= set(COMMANDS)
