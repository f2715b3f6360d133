"""Where runs stand, read from files that may be half written, stale or hostile."""

import json
import os
import time
from pathlib import Path

import pytest

from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.records.holder import LEASE
from epigrok.records.lease import hold_lease
from epigrok.records.status import counts, read_status, read_statuses
from epigrok.sweeps.description import Sweep, prepare


def one_run(directory: Path) -> RunDirectory:
    sweep = Sweep(name="s", methods=("icl-tiny",), overrides={"num_steps": 2500})
    (run,) = prepare(directory, sweep).values()
    return run


def state_of(run: RunDirectory) -> str:
    return read_status(run, time.time()).state


def test_a_run_passes_through_every_state(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    assert state_of(run) == "queued"
    with hold_lease(run.path):
        assert state_of(run) == "running"
        run.write_status(state="running", step=10, steps_per_second=5.0, updated=time.time() - 7)
        status = read_status(run, time.time())
        assert status.state == "running"
        assert status.seconds_left == (2500 - 10) / 5.0
        assert status.age_seconds == pytest.approx(7, abs=5)
    assert state_of(run) == "lost"
    assert read_status(run, time.time()).seconds_left is None
    run.write_status(state="stopped", step=20)
    assert state_of(run) == "stopped"
    run.write_status(state="failed", step=20, reason="the loss is not finite")
    assert read_status(run, time.time()).reason == "the loss is not finite"
    with hold_lease(run.path):
        assert state_of(run) == "running"
        assert read_status(run, time.time()).reason == ""
    run.mark_done()
    assert state_of(run) == "done"
    assert read_status(run, time.time()).step == 2500


def test_a_run_elsewhere_whose_heart_stopped_is_lost(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    run.write_status(state="running", step=10)
    holder = {"token": "t", "host": "h", "machine": "m", "pid": 1, "process_start": ""}
    holder |= {"job": "", "job_restarts": 0, "seconds": 60}
    (run.path / LEASE).write_text(json.dumps(holder))
    assert state_of(run) == "running"
    os.utime(run.path / LEASE, (time.time() - 61,) * 2)
    assert state_of(run) == "lost"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"state": 3}'])
def test_a_status_that_makes_no_sense_does_not_stop_the_table(content: str, tmp_path: Path) -> None:
    run = one_run(tmp_path)
    (run.path / "status.json").write_text(content)
    (status,) = read_statuses(tmp_path)
    assert status.state == "lost"
    assert (status.step, status.accuracy, status.reason) == (0, {}, "")


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("config.json", "{", r"config.json is not valid JSON"),
        ("config.json", "[]", r"config.json is not the configuration of a run"),
        ("run.json", '{"format": 0}', "has format 0"),
        ("run.json", None, "was written by an older version of epigrok"),
    ],
)
def test_a_run_that_cannot_be_read_says_why(
    file: str, content: str | None, reason: str, tmp_path: Path
) -> None:
    run = one_run(tmp_path)
    run.mark_done()
    if content is None:
        (run.path / file).unlink()
    else:
        (run.path / file).write_text(content)
    (status,) = read_statuses(tmp_path)
    assert (status.state, status.config, status.num_steps) == ("unreadable", {}, 0)
    assert reason in status.reason


def test_scores_and_configuration_are_told(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    run.write_status(state="stopped", step=7, accuracy_final={"id_val": 0.5}, epistemic_final=None)
    status = read_status(run, time.time())
    assert (status.step, status.num_steps, status.config["optim.kind"]) == (7, 2500, "MuonConfig")
    assert (status.accuracy, status.epistemic) == ({"id_val": 0.5}, {})
    assert (status.run_id, status.age_seconds) == (run.path.name, None)


def test_states_are_counted_in_the_order_of_their_urgency(tmp_path: Path) -> None:
    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1, 2, 3))
    done, failed, unreadable, _ = prepare(tmp_path, sweep).values()
    done.mark_done()
    failed.write_status(state="failed")
    (unreadable.path / "run.json").unlink()
    found = counts(read_statuses(tmp_path))
    assert list(found.items()) == [("failed", 1), ("unreadable", 1), ("queued", 1), ("done", 1)]


def test_a_place_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no runs in"):
        read_statuses(tmp_path)


def test_a_damaged_status_shows_the_step_of_the_newest_checkpoint(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    for step in (0, 20):
        path = run.checkpoints / f"step-{step}"
        path.mkdir(parents=True)
        (path / "model.safetensors").touch()
    (run.path / "status.json").write_text('{"step": 2')
    status = read_status(run, time.time())
    assert (status.state, status.step) == ("lost", 20)
