"""What a dry run prints of runs, conditions and cost."""

import pytest

from epigrok.commands.sweep_plan import plan
from epigrok.sweeps.description import Condition, Sweep, runs_of
from epigrok.sweeps.shipped import find_sweep


def lines_of(sweep: Sweep, steps_per_second: float | None = None) -> list[str]:
    return plan(sweep, runs_of(sweep), None, steps_per_second)


def test_a_run_is_told_by_the_fields_that_it_has() -> None:
    ess = {"optim.ess": 1442307.6923076923}
    conditions = (Condition(where={"preset": "icl-small-ivon"}, set=ess),)
    methods = ("icl-small", "icl-small-ivon")
    axes = {"evaluation.posteriors": (["point"], ["point", "laplace:1", "laplace:2", "laplace:3"])}
    sweep = Sweep(name="s", methods=methods, axes=axes, seeds=(0, 1), conditions=conditions)
    runs = [line for line in lines_of(sweep) if "  missing  " in line]
    plain, ivon = (
        [r for r in runs if f"preset={name} " in r] for name in ("icl-small", "icl-small-ivon")
    )
    assert len(plain) == len(ivon) == 4
    assert not any("ess" in line for line in plain)
    assert "posteriors=[point, laplace:1, 2 more]  run_seed=0" in " ".join(plain)


def test_a_field_of_a_condition_has_six_digits() -> None:
    conditions = (Condition(where={"run_seed": 1}, set={"optim.lr": 0.12345678901}),)
    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1), conditions=conditions)
    lines = lines_of(sweep)
    assert "  optim.lr = 0.123457 where run_seed = 1" in lines
    assert any(line.endswith("lr=0.123457  run_seed=1") for line in lines)


@pytest.mark.parametrize("name", ["paper-small", "controls", "ivon-recipes"])
def test_lines_on_shipped_sweeps_fit_a_page(name: str) -> None:
    lines = lines_of(find_sweep(name))
    ends = lines.index("")
    assert max(map(len, lines[:ends])) <= 200
    assert max(map(len, lines[ends:])) <= 100


def test_one_run_is_one_and_little_work_is_in_minutes() -> None:
    sweep = Sweep(name="s", methods=("classic",), overrides={"num_steps": 300})
    assert lines_of(sweep, steps_per_second=10.0)[-1] == "device-minutes: 0.5"
    assert "sweep s: 1 run" in lines_of(sweep)
    assert "device-hours: unknown for 1 run without a measured speed;" in lines_of(sweep)
