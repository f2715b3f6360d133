"""Which fields tell runs apart, and what people call them."""

from dataclasses import replace

from epigrok.config import flatten, to_json
from epigrok.sweeps.description import Sweep, runs_of
from epigrok.sweeps.shipped import find_sweep
from epigrok.tables.fields import (
    by_size,
    distinguishing_fields,
    field_label,
    value_label,
    varying_fields,
)

SWEEP = Sweep(
    name="s",
    methods=("icl-paper", "classic"),
    axes={"task.train_fraction": (0.5, 0.25)},
    seeds=(0, 1),
)


def flat_configs(sweep: Sweep) -> list[dict[str, object]]:
    return [flatten(to_json(config)) for config in runs_of(sweep).values()]


def test_fields_vary_but_for_what_a_preset_implies() -> None:
    assert varying_fields(flat_configs(find_sweep("smoke"))) == ["preset", "run_seed"]
    assert varying_fields(flat_configs(SWEEP)) == ["preset", "task.train_fraction", "run_seed"]
    assert varying_fields(flat_configs(replace(SWEEP, methods=("classic",), seeds=(3,)))) == [
        "task.train_fraction"
    ]
    assert varying_fields([]) == []


def test_two_seeds_that_differ_count_as_two_fields() -> None:
    configs = [{"task_seed": 0, "run_seed": seed} for seed in (0, 1)]
    assert varying_fields(configs) == ["run_seed"]
    assert varying_fields([*configs, {"task_seed": 1, "run_seed": 0}]) == ["task_seed", "run_seed"]


def test_a_field_that_others_imply_distinguishes_nothing() -> None:
    configs = [{"lr": lr, "num_steps": 10 * lr, "run_seed": s} for lr in (1, 2) for s in (0, 1)]
    assert distinguishing_fields(configs) == ["lr"]
    assert distinguishing_fields(configs, with_seeds=True) == ["lr", "run_seed"]
    assert distinguishing_fields(configs[:2]) == []


def test_fields_and_values_have_names_that_people_use() -> None:
    assert field_label("task.num_base_tasks") == "training tasks T"
    assert field_label("optim.weight_decay") == "weight decay"
    # Four tasks are made from each base task.
    assert value_label("task.num_base_tasks", 8) == "32"
    assert value_label("task.num_train_tasks", 8) == "8"
    assert value_label("optim.lr", 0.0010000) == "0.001"
    assert value_label("optim.lr", 0.1 + 0.2) == "0.3"


def test_values_that_differ_look_different() -> None:
    """Tables group runs by what they show."""
    assert value_label("optim.ess", 1442307.6923076923) == "1442307.69"
    assert value_label("optim.ess", 1442308.2) == "1442308.2"


def test_values_are_sorted_as_people_would() -> None:
    values = ["b", 10, "a", 2.5, None, True]
    assert sorted(values, key=by_size) == [True, 2.5, 10, None, "a", "b"]
