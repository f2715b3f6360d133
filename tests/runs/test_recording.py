"""Filling a run directory: made once, and checked ever after."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_run import EVALUATION, tiny

from epigrok.errors import UserError
from epigrok.evaluation import EvaluationRow
from epigrok.runs import Run
from epigrok.runs.recording import (
    open_or_create,
    point_accuracy,
    require_same_config,
    status_scores,
)
from epigrok.workspace import Workspace

CPU = torch.device("cpu")


def test_a_new_directory_is_filled_and_an_old_one_only_checked(
    tmp_path: Path, workspace: Workspace
) -> None:
    run = open_or_create(tmp_path, tiny(), CPU, workspace)
    assert run.config() == tiny()
    world = (run.path / "world.safetensors").read_bytes()
    again = open_or_create(run.path, tiny(), CPU, workspace)
    assert len(again.provenance()["processes"]) == 2
    assert (run.path / "world.safetensors").read_bytes() == world
    with pytest.raises(UserError, match="another configuration; differing fields: run_seed: 0 -> "):
        open_or_create(run.path, tiny(run_seed=1), CPU, workspace)


def test_a_world_without_a_configuration_is_drawn_anew(
    tmp_path: Path, workspace: Workspace
) -> None:
    for name in ("run", "other", "first"):
        (tmp_path / name).mkdir()
    run = open_or_create(tmp_path / "run", tiny(), CPU, workspace)
    (run.path / "config.json").unlink()
    open_or_create(run.path, tiny(task_seed=1), CPU, workspace)
    expected = open_or_create(tmp_path / "other", tiny(task_seed=1), CPU, workspace)
    ours, theirs = run.world(), expected.world()
    assert ours.keys() == theirs.keys() != set()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    first = open_or_create(tmp_path / "first", tiny(), CPU, workspace).world()
    assert not all(torch.equal(ours[name], first[name]) for name in ours)


@pytest.mark.parametrize("name", ["checkpoints", "positions"])
def test_a_folder_that_leads_out_of_the_run_is_refused(
    name: str, tmp_path: Path, workspace: Workspace
) -> None:
    for folder in ("run", "outside"):
        (tmp_path / folder).mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "outside")
    with pytest.raises(UserError, match=f"run/{name} leads out of"):
        open_or_create(tmp_path / "run", tiny(), CPU, workspace)
    assert list((tmp_path / "outside").iterdir()) == []


def test_what_differs_is_named(tmp_path: Path, workspace: Workspace) -> None:
    run = open_or_create(tmp_path, tiny(), CPU, workspace)
    require_same_config(run, tiny())
    other = tiny(replace(EVALUATION, every=6), batch_size=16)
    with pytest.raises(UserError, match=r"batch_size: 32 -> 16; evaluation\.every: 5 -> 6"):
        require_same_config(run, other)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"processes": 3}'])
def test_a_damaged_provenance_is_kept_under_another_name(
    content: str, tmp_path: Path, workspace: Workspace
) -> None:
    open_or_create(tmp_path, tiny(), CPU, workspace)
    for number in range(2):
        (tmp_path / "provenance.json").write_text(content)
        with pytest.warns(UserWarning, match=f"was moved to provenance-{number}.json"):
            run = open_or_create(tmp_path, tiny(), CPU, workspace)
        assert (tmp_path / f"provenance-{number}.json").read_text() == content
        assert len(run.provenance()["processes"]) == 1


def test_a_finished_run_tells_how_often_each_confidence_was_right(finished: Run) -> None:
    query = """select split, sum(count * abs(accuracy - confidence)) / sum(count),
                   sum(count * accuracy) / sum(count), sum(count)
               from calibration where posterior = 'laplace' group by split"""
    found = {split: values for split, *values in finished.sql(query).fetchall()}
    rows = [row for row in finished.directory.rows("final") if row["posterior"] == "laplace"]
    assert {row["split"] for row in rows} == found.keys() == {"id_train", "id_val", "ood_val"}
    for row in rows:
        num_asked = 1 if row["split"] == "id_val" else 6
        expected = [row["ece"], row["accuracy"], row["num_sequences"] * num_asked]
        assert found[row["split"]] == pytest.approx(expected)


def test_positions_average_to_the_metrics_over_all_answers(finished: Run) -> None:
    found = []
    for table in ("metrics", "final", "exact"):
        by_length = "positions" if table == "metrics" else f"{table}_positions"
        query = f"""select m.nll, p.nll from {table} m join
            (select step, split, posterior, avg(nll) as nll from {by_length} group by all) p
            using (step, split, posterior)"""
        found += finished.sql(query).fetchall()
    assert len(found) == (5 * 3 + 3 + 2) * 3
    for over_all, mean_of_lengths in found:
        assert mean_of_lengths == pytest.approx(over_all, rel=1e-4)


def row(split: str, posterior: str, num_samples: int, accuracy: float, eu: float) -> EvaluationRow:
    summary = {"accuracy_final": accuracy, "epistemic_final": eu}
    return EvaluationRow(split, posterior, num_samples, 8, summary, {}, torch.zeros(3, 15))


def test_the_status_has_the_points_accuracy_and_the_first_sampled_uncertainty() -> None:
    rows = [
        row("id_val", "laplace", 4, 0.1, 0.5),
        row("id_val", "weight-noise:1", 4, 0.2, 0.7),
        row("ood_val", "laplace", 4, 0.3, 0.6),
        row("id_val", "point", 1, 0.9, 0.0),
        row("ood_val", "point", 1, 0.8, 0.0),
    ]
    assert status_scores(rows) == {
        "accuracy_final": {"id_val": 0.9, "ood_val": 0.8},
        "epistemic_final": {"id_val": 0.5, "ood_val": 0.6},
    }
    assert status_scores(rows[:3])["accuracy_final"] == {"id_val": 0.1, "ood_val": 0.3}
    assert status_scores(rows[3:])["epistemic_final"] == {}
    json.dumps(status_scores(rows), allow_nan=False)
    assert point_accuracy(rows, "ood_val") == 0.8
    assert point_accuracy(rows[:3], "ood_val") is None
