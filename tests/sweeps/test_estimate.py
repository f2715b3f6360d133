"""What is left of a sweep, and how long it will take."""

from dataclasses import replace
from pathlib import Path

import pytest
from table_files import write_table

from epigrok.sweeps.description import Sweep, prepare, runs_of
from epigrok.sweeps.estimate import estimate, measured_speeds

SWEEP = Sweep(
    name="s",
    methods=("classic", "icl-tiny"),
    axes={"optim.weight_decay": (1.0, 2.0)},
    overrides={"num_steps": 3600},
)


def test_a_given_speed_counts_for_every_run() -> None:
    cost = estimate(runs_of(SWEEP), None, steps_per_second=2.0)
    assert (cost.num_steps, cost.hours, cost.num_unknown_runs) == (4 * 3600, 2.0, 0)


def test_speeds_come_from_runs_of_the_same_shape(tmp_path: Path) -> None:
    runs = runs_of(SWEEP)
    assert measured_speeds(tmp_path / "nowhere") == measured_speeds(tmp_path) == {}
    directories = prepare(tmp_path, SWEEP)
    unknown = estimate(runs, tmp_path, None)
    assert (unknown.num_steps, unknown.hours, unknown.num_unknown_runs) == (4 * 3600, 0.0, 4)
    done, other = (d for d in directories.values() if d.config().preset == "classic")
    # 3600 steps in 900 seconds, and 900 of the other in 225 more.
    rows = [
        {"step": step, "seconds_training": 400.0, "seconds_evaluating": 50.0} for step in (0, 3600)
    ]
    write_table(done, "timings", rows)
    done.mark_done()
    write_table(
        other, "timings", [{"step": 900, "seconds_training": 200, "seconds_evaluating": 25}]
    )
    other.write_status(state="stopped", step=900)
    assert list(measured_speeds(tmp_path).values()) == [4.0]
    cost = estimate(runs, tmp_path, None)
    assert cost.num_steps == 2700 + 2 * 3600
    assert cost.hours == pytest.approx(2700 / 4.0 / 3600)
    assert cost.num_unknown_runs == 2


def test_a_finished_sweep_costs_nothing(tmp_path: Path) -> None:
    sweep = replace(SWEEP, methods=("classic",))
    for run in prepare(tmp_path, sweep).values():
        run.mark_done()
    cost = estimate(runs_of(sweep), tmp_path, None)
    assert (cost.num_steps, cost.hours, cost.num_unknown_runs) == (0, 0.0, 0)
