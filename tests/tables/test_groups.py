"""What tells runs apart, and which of them are repetitions of one setting."""

from pathlib import Path

import pytest
from table_files import write_table

from epigrok.errors import UserError
from epigrok.records.description import TrackedPosterior
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import open_sweep
from epigrok.tables.groups import (
    configs_by_preset,
    num_settings,
    require_evaluated,
    settings,
    shown_posteriors,
)

SWEEP = Sweep(
    name="s",
    methods=("icl-paper", "classic"),
    axes={"task.train_fraction": (0.5, 0.25)},
    seeds=(0, 1),
)


def evaluated(run: RunDirectory, accuracy: float, posterior: str = "point") -> None:
    """The last step of a run, on every split of its task but training's."""
    keys = {"step": 10, "posterior": posterior, "num_samples": 1, "num_sequences": 8}
    rows = [
        {**keys, "split": split.name, "accuracy_final": accuracy}
        for split in run.config().task.splits[1:]
    ]
    write_table(run, "final", rows)


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
