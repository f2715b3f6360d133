"""Which runs make one curve."""

from pathlib import Path

import pytest
from written_runs import GRID, write_grid, write_run

from epigrok.errors import UserError
from epigrok.figures.settings import choice_note, setting_label, shown_settings
from epigrok.posteriors import kind_of
from epigrok.records.description import TrackedPosterior
from epigrok.sweeps.description import Condition, Sweep, prepare
from epigrok.tables import open_sweep
from epigrok.tables.fields import distinguishing_fields
from epigrok.tables.groups import configs_by_preset, shown_posteriors


def write_sweep(directory: Path, **description: object) -> None:
    sweep = Sweep(**{**vars(GRID), **description})
    for run in prepare(directory, sweep).values():
        write_run(run)


def test_of_many_settings_the_most_accurate_of_each_preset_is_shown(tmp_path: Path) -> None:
    write_grid(tmp_path)
    store = open_sweep(tmp_path)
    settings = shown_settings(store)
    assert [setting.preset for setting in settings] == ["icl-paper", "icl-paper-ivon"]
    # Accuracy grows with the fraction and not with the tasks; of equals the smallest is shown.
    best = {"task.num_base_tasks": 8, "task.train_fraction": 0.8}
    assert [dict(setting.fields) for setting in settings] == [best, best]
    lines = ["icl-paper", "training tasks T = 32", "training fraction = 0.8", "3 runs"]
    assert setting_label(settings[0]).splitlines() == lines
    assert "Shown are 2 of 12 settings" in choice_note(store, settings)


def test_few_settings_are_all_shown_and_differ_in_more_than_seeds(tmp_path: Path) -> None:
    write_sweep(tmp_path, axes={"optim.lr": (1e-4, 2e-4)}, methods=("icl-paper",))
    store = open_sweep(tmp_path)
    settings = shown_settings(store)
    assert [dict(setting.fields) for setting in settings] == [
        {"optim.lr": 1e-4},
        {"optim.lr": 2e-4},
    ]
    for setting in settings:
        seeds = setting.store.sql("""select run_seed, "optim.lr" from runs order by all""")
        assert seeds.fetchall() == [(seed, setting.fields["optim.lr"]) for seed in range(3)]
    assert choice_note(store, settings) == ""


def test_unfinished_runs_count_and_are_told(tmp_path: Path) -> None:
    fraction = {"task.train_fraction": (0.3,), "task.num_base_tasks": (8,)}
    write_sweep(tmp_path, axes=fraction, methods=("icl-paper",))
    next(tmp_path.glob("*/DONE")).unlink()
    (setting,) = shown_settings(open_sweep(tmp_path))
    assert setting_label(setting) == "icl-paper\n3 runs, 1 unfinished"
    assert setting.splits == ("id_train", "id_val", "ood_train", "ood_val")
    assert setting.accuracy == pytest.approx(0.96 * 0.3 / 0.8)


def test_fields_that_others_imply_tell_nothing_apart(tmp_path: Path) -> None:
    longer = Condition(where={"task.num_base_tasks": 16}, set={"num_steps": 4000})
    write_sweep(tmp_path, conditions=(longer,))
    for configs in configs_by_preset(open_sweep(tmp_path)).values():
        assert distinguishing_fields(configs) == ["task.num_base_tasks", "task.train_fraction"]


@pytest.mark.parametrize(
    ("tracked", "shown"),
    [
        (("point",), ()),
        (("point", "laplace"), ("laplace",)),
        (("point", "laplace-probit"), ()),
        (("point", "ivon", "ivon-isotropic"), ("ivon", "ivon-isotropic")),
        (("weight-noise:0.1", "weight-noise:0.3"), ("weight-noise:0.3",)),
        (
            ("point", "laplace:evidence", "weight-noise:0.1", "weight-noise:0.01"),
            ("laplace:evidence", "weight-noise:0.1"),
        ),
    ],
)
def test_the_inferred_posterior_and_its_strongest_control_are_shown(
    tracked: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    described = [TrackedPosterior(name, kind_of(name).role, ()) for name in tracked]
    assert shown_posteriors(described) == shown


def test_a_sweep_that_has_not_begun_is_told(tmp_path: Path) -> None:
    prepare(tmp_path, GRID)
    with pytest.raises(UserError, match="has been evaluated yet"):
        shown_settings(open_sweep(tmp_path))


def test_seeds_can_be_shown_apart(tmp_path: Path) -> None:
    fraction = {"task.train_fraction": (0.3,), "task.num_base_tasks": (8,)}
    write_sweep(tmp_path, axes=fraction, methods=("icl-paper",))
    settings = shown_settings(open_sweep(tmp_path, seeds_apart=True))
    assert [dict(setting.fields) for setting in settings] == [{"run_seed": n} for n in range(3)]
    assert setting_label(settings[2]) == "icl-paper\nrun seed = 2\n1 run"
