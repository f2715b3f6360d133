"""What tells runs apart, and which of them are repetitions of one setting."""

from dataclasses import replace
from pathlib import Path

import pytest
from written_runs import write_table

from epigrok.config import flatten, to_json
from epigrok.errors import UserError
from epigrok.records.description import TrackedPosterior
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare, runs_of
from epigrok.sweeps.shipped import find_sweep
from epigrok.tables import open_sweep
from epigrok.tables.groups import (
    by_size,
    configs_by_preset,
    distinguishing_fields,
    field_label,
    num_settings,
    require_evaluated,
    settings,
    shown_posteriors,
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


def evaluated(run: RunDirectory, accuracy: float, posterior: str = "point") -> None:
    """The last step of a run, on every split of its task but training's."""
    keys = {"step": 10, "posterior": posterior, "num_samples": 1, "num_sequences": 8}
    rows = [
        {**keys, "split": split.name, "accuracy_final": accuracy}
        for split in run.config().task.splits[1:]
    ]
    write_table(run, "final", rows)


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


def test_values_are_sorted_as_people_would() -> None:
    values = ["b", 10, "a", 2.5, None, True]
    assert sorted(values, key=by_size) == [True, 2.5, 10, None, "a", "b"]


@pytest.mark.parametrize(
    ("tracked", "shown"),
    [
        ([("point", "point")], ()),
        ([("laplace:1", "inferred"), ("ivon", "inferred")], ("ivon",)),
        (
            [
                ("weight-noise:0.01", "control"),
                ("mine", "inferred"),
                ("weight-noise:0.1", "control"),
            ],
            ("mine", "weight-noise:0.1"),
        ),
    ],
)
def test_the_inferred_posterior_is_shown_with_its_strongest_control(
    tracked: list[tuple[str, str]], shown: tuple[str, ...]
) -> None:
    posteriors = [TrackedPosterior(name, role, ()) for name, role in tracked]
    assert shown_posteriors(posteriors) == shown


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDirectory]:
    return list(prepare(tmp_path, SWEEP).values())


def of(runs: list[RunDirectory], preset: str, fraction: float) -> list[RunDirectory]:
    configs = [(run, run.config()) for run in runs]
    return [
        run
        for run, config in configs
        if (config.preset, config.task.train_fraction) == (preset, fraction)
    ]


def test_seeds_are_pooled_and_settings_sorted(runs: list[RunDirectory], tmp_path: Path) -> None:
    for number, run in enumerate(runs):
        evaluated(run, accuracy=number / 10)
        run.mark_done()
    (of(runs, "classic", 0.25)[1].path / "DONE").unlink()
    found = settings(open_sweep(tmp_path))
    assert [(s.preset, dict(s.fields), s.num_runs, s.num_unfinished) for s in found] == [
        ("classic", {"task.train_fraction": 0.25}, 2, 1),
        ("classic", {"task.train_fraction": 0.5}, 2, 0),
        ("icl-paper", {"task.train_fraction": 0.25}, 2, 0),
        ("icl-paper", {"task.train_fraction": 0.5}, 2, 0),
    ]
    first, last = found[0], found[-1]
    assert first.name == "classic, training fraction = 0.25"
    assert (first.runs, last.runs) == ("2 runs, 1 unfinished", "2 runs")
    assert (first.splits, first.num_examples) == (("id_val",), 1)
    assert (last.hardest_split, last.num_examples) == ("ood_val", 32)
    assert first.posteriors == ("laplace", "weight-noise:0.1")
    for setting, fraction in ((first, 0.25), (found[1], 0.5)):
        members = of(runs, "classic", fraction)
        assert set(setting.store.runs) == {run.path.name for run in members}
        assert setting.accuracy == pytest.approx(sum(runs.index(run) for run in members) / 20)
    assert first.keys() == {"preset": "classic", "task.train_fraction": 0.25}


def test_seeds_can_be_kept_apart(runs: list[RunDirectory], tmp_path: Path) -> None:
    for run in runs:
        evaluated(run, 0.5)
    found = settings(open_sweep(tmp_path, seeds_apart=True))
    assert len(found) == len(runs) == 8
    assert all(setting.num_runs == 1 for setting in found)
    assert found[0].name == "classic, training fraction = 0.25, run seed = 0"


def test_a_setting_that_was_not_evaluated_is_counted_only(
    runs: list[RunDirectory], tmp_path: Path
) -> None:
    store = open_sweep(tmp_path)
    assert (settings(store), num_settings(store)) == ([], 4)
    with pytest.raises(UserError, match=r"no run in .* has been evaluated yet"):
        require_evaluated(store)
    evaluated(runs[0], 0.5)
    (setting,) = require_evaluated(open_sweep(tmp_path))
    assert (setting.num_runs, setting.num_unfinished) == (1, 1)


def test_without_a_point_the_best_posterior_is_judged(
    runs: list[RunDirectory], tmp_path: Path
) -> None:
    rows = [("laplace", 0.5), ("ivon", 0.75), ("oracle-generalising", 1.0)]
    write_table(
        runs[0],
        "final",
        [{"step": 1, "split": "id_val", "posterior": p, "accuracy_final": a} for p, a in rows],
    )
    (setting,) = settings(open_sweep(tmp_path))
    assert setting.accuracy == 0.75


def test_a_run_that_cannot_be_read_belongs_to_no_setting(
    runs: list[RunDirectory], tmp_path: Path
) -> None:
    (of(runs, "classic", 0.5)[0].path / "run.json").unlink()
    found = configs_by_preset(open_sweep(tmp_path))
    assert {name: len(configs) for name, configs in found.items()} == {"classic": 3, "icl-paper": 4}
