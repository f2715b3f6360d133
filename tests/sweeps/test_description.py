"""A sweep: what a description stands for, how it grows, and how mistakes in it are told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from epigrok.config import flatten, preset, run_id, to_json
from epigrok.config.overrides import with_fields
from epigrok.errors import UserError
from epigrok.records.directory import run_directories
from epigrok.sweeps.description import (
    Condition,
    Sweep,
    prepare,
    problem_with,
    recorded_sweeps,
    runs_of,
    sweep_to_json,
)
from epigrok.sweeps.description_files import read_sweep


def test_a_variant_is_what_conditions_make_of_it() -> None:
    sweep = Sweep(
        name="s",
        methods=("classic", "icl-tiny"),
        variants=("plain", "short"),
        conditions=(
            Condition(
                where={"variant": "short", "preset": "classic"},
                set={"num_steps": 20, "batch_size": 4},
            ),
            Condition(where={"variant": ["short", "plain"]}, set={"evaluation.every": 7}),
        ),
    )
    runs = [
        (c.preset, c.num_steps, c.batch_size, c.evaluation.every) for c in runs_of(sweep).values()
    ]
    # Nothing makes the short variant of icl-tiny another run.
    assert runs == [("classic", 3000, 512, 7), ("classic", 20, 4, 7), ("icl-tiny", 2000, 256, 7)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "a sweep must be a JSON object"),
        ("{}", "'methods' is missing"),
        ('{"methods": []}', "at least one preset"),
        ('{"methods": ["classic"], "axis": {}}', "unknown entries axis"),
        ('{"methods": "classic"}', "'methods' must be a list"),
        ('{"methods": [3]}', "'methods' must be preset names"),
        ('{"methods": ["icl-huge"]}', "no preset named 'icl-huge'"),
        ('{"methods": ["classic"], "seeds": [0.5]}', "'seeds' must be whole numbers"),
        ('{"methods": ["classic"], "seeds": [1, 1]}', "'seeds' lists a value twice"),
        ('{"methods": ["classic"], "axes": {"optim.lr": 1}}', "'optim.lr' must be a list"),
        ('{"methods": ["classic"], "axes": {"optim.lr": []}}', "'optim.lr' has no values"),
        ('{"methods": ["classic"], "axes": {"optim.ess": [1]}}', "no field 'optim.ess'"),
        ('{"methods": ["classic"], "axes": {"run_seed": [1]}}', "is set by 'seeds'"),
        ('{"methods": ["classic"], "task_seeds": 1}', "'task_seeds' must be a list"),
        ('{"methods": ["classic"], "task_seeds": [1.5]}', "'task_seeds' must be whole numbers"),
        ('{"methods": ["classic"], "task_seeds": [2, 2]}', "'task_seeds' lists a value twice"),
        ('{"methods": ["classic"], "axes": {"__class__": [1]}}', "no field '__class__'"),
        ('{"methods": ["classic"], "axes": {"optim.betas.0": [1]}}', "no field 'optim.betas.0'"),
        (
            '{"methods": ["classic"], "overrides": {"evaluation.posteriors": ["point", 3]}}',
            "evaluation.posteriors cannot be",
        ),
        ('{"methods": ["classic"], "conditions": [{}]}', "'where' and 'set'"),
        ('{"methods": ["classic"], "variants": "a"}', "'variants' must be a list"),
        ('{"methods": ["classic"], "variants": [1]}', "'variants' must be names"),
        (
            '{"methods": ["classic"], "variants": ["a", "b"], "conditions": '
            '[{"where": {"variant": ["a", "c"]}, "set": {}}]}',
            "a condition asks for variant 'c'; there are: a, b",
        ),
        (
            '{"methods": ["classic"], "conditions": [{"where": {"x": 1}, "set": {}}]}',
            "unknown fields: x",
        ),
        (
            '{"methods": ["classic"], "axes": {"num_steps": [100, 200]}, "conditions": '
            '[{"where": {"num_steps": 200}, "set": {"batch_size": 8}}, '
            '{"where": {"num_steps": 300}, "set": {"batch_size": 9}}]}',
            "a condition applies to no run: num_steps = 300",
        ),
        (
            '{"methods": ["icl-paper"], "axes": {"task.num_base_tasks": [8, 300]}}',
            "at task.num_base_tasks = 300 of preset icl-paper: 1200 training tasks",
        ),
        (
            '{"methods": ["classic"], "variants": ["a", "b"]}',
            "variant b changes no run; add a condition for it",
        ),
        (
            '{"methods": ["classic"], "axes": {"optim.weight_decay": [1, 1.0]}}',
            "'optim.weight_decay' lists a value twice",
        ),
    ],
)
def test_mistakes_in_a_description_are_one_sentence(
    content: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.json"
    file.write_text(content)
    with pytest.raises(UserError) as error:
        prepare(tmp_path / "out", read_sweep(file))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_seeds_of_runs_and_of_tasks_are_combined_or_go_together() -> None:
    def seeds_of(sweep: Sweep) -> list[tuple[int, int]]:
        return [(config.run_seed, config.task_seed) for config in runs_of(sweep).values()]

    assert seeds_of(Sweep(name="s", methods=("classic",), seeds=(3, 4))) == [(3, 3), (4, 4)]
    one_world = Sweep(name="s", methods=("classic",), seeds=(3, 4), task_seeds=(7,))
    assert seeds_of(one_world) == [(3, 7), (4, 7)]
    worlds = Sweep(name="s", methods=("classic",), seeds=(3, 4), task_seeds=(7, 8))
    assert seeds_of(worlds) == [(3, 7), (3, 8), (4, 7), (4, 8)]
    assert seeds_of(Sweep(name="s", methods=("classic",), task_seeds=(1, 2))) == [(0, 1), (0, 2)]


def test_conditions_see_axes_and_presets_and_later_ones_win() -> None:
    sweep = Sweep(
        name="s",
        methods=("classic", "classic-ivon"),
        axes={"task.modulus": (7, 11)},
        overrides={"batch_size": 4},
        conditions=(
            Condition(where={"preset": "classic", "task.modulus": [7, 13]}, set={"num_steps": 20}),
            Condition(where={"num_steps": 20}, set={"evaluation.every": 2}),
            Condition(where={"optim.ess": 1e6}, set={"optim.ess": 5.0}),
        ),
    )
    runs = [flatten(to_json(config)) for config in runs_of(sweep).values()]
    short = [run for run in runs if run["num_steps"] == 20]
    assert [(run["preset"], run["task.modulus"]) for run in short] == [("classic", 7)]
    assert short[0]["evaluation.every"] == 2
    assert [run.get("optim.ess") for run in runs] == [None, None, 5.0, 5.0]


def test_a_grown_sweep_finds_its_runs_again(tmp_path: Path) -> None:
    small = Sweep(name="s", methods=("classic",), axes={"optim.lr": (1e-3, 2e-3)}, seeds=(0, 1))
    large = Sweep(
        name="s", methods=("classic",), axes={"optim.lr": (1e-3, 2e-3, 3e-3)}, seeds=(0, 1)
    )
    other = Sweep(name="other", methods=("icl-tiny",))
    before = prepare(tmp_path, small)
    times = {name: (run.path / "config.json").stat().st_mtime_ns for name, run in before.items()}
    after = prepare(tmp_path, large)
    assert before.keys() < after.keys()
    assert len(after) == 6
    for name, time_written in times.items():
        assert (after[name].path / "config.json").stat().st_mtime_ns == time_written
    assert recorded_sweeps(tmp_path) == [large]
    prepare(tmp_path, other)
    prepare(tmp_path, large)
    assert recorded_sweeps(tmp_path) == [other, large]
    assert {run.path.name for run in run_directories(tmp_path)} == {*after, *runs_of(other)}


def test_a_description_of_another_time_is_kept_as_it_is(tmp_path: Path) -> None:
    old = sweep_to_json(Sweep(name="old", methods=("classic",))) | {"methods": ["forgotten"]}
    (tmp_path / "sweep.json").write_text(json.dumps({"sweeps": [old]}))
    prepare(tmp_path, Sweep(name="new", methods=("classic",)))
    assert [sweep.name for sweep in recorded_sweeps(tmp_path)] == ["old", "new"]
    (tmp_path / "sweep.json").write_text("[]")
    with pytest.raises(UserError, match="is not what `epigrok sweep` writes there"):
        prepare(tmp_path, Sweep(name="new", methods=("classic",)))


@pytest.mark.parametrize("label", ["../../escaped", "<script>alert(1)</script>", "/etc/x", "a\0b"])
def test_labels_are_never_paths(label: str, tmp_path: Path) -> None:
    file = tmp_path / "description.json"
    file.write_text(json.dumps({"name": label, "methods": ["classic"]}))
    directory = tmp_path / "deep" / "down" / "sweep"
    runs = prepare(directory, read_sweep(file))
    assert {path.name for path in directory.iterdir()} == {"sweep.json", *runs}
    assert all(len(name) == 12 and name.isalnum() for name in runs)
    assert {path.name for path in tmp_path.iterdir()} == {"deep", "description.json"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"down"}


def test_a_directory_whose_configuration_was_changed_is_noticed(tmp_path: Path) -> None:
    (run,) = prepare(tmp_path, Sweep(name="s", methods=("classic",))).values()
    assert problem_with(run) is None
    changed = with_fields(preset("classic"), {"num_steps": 5000})
    (run.path / "config.json").write_text(json.dumps(to_json(changed)))
    assert run_id(changed) in str(problem_with(run))
    (run.path / "config.json").write_text("{")
    assert "not valid JSON" in str(problem_with(run))


def test_every_run_is_described_and_posteriors_that_do_not_exist_are_refused(
    tmp_path: Path,
) -> None:
    posteriors = "evaluation.posteriors"
    good = Sweep(name="s", methods=("classic",), overrides={posteriors: ["point", "laplace:2"]})
    (run,) = prepare(tmp_path, good).values()
    assert [posterior.name for posterior in run.description().posteriors] == ["point", "laplace:2"]
    assert {path.name for path in run.path.iterdir()} == {"run.json", "config.json"}
    wrong = Sweep(name="s", methods=("classic",), overrides={posteriors: ["nowhere"]})
    with pytest.raises(UserError, match="no posterior named 'nowhere'"):
        prepare(tmp_path / "wrong", wrong)
    assert run_directories(tmp_path) == [run]


def test_a_place_that_holds_a_run_or_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    sweep = Sweep(name="s", methods=("classic",))
    (run,) = prepare(tmp_path, sweep).values()
    with pytest.raises(UserError, match="holds a single run; choose another directory"):
        prepare(run.path, sweep)
    with pytest.raises(UserError, match="cannot write to /proc/sweep"):
        prepare(Path("/proc/sweep"), sweep)


def test_reading_a_description_needs_no_torch() -> None:
    script = """import sys
from epigrok.sweeps.description import runs_of
from epigrok.sweeps.shipped import find_sweep
assert len(runs_of(find_sweep("smoke"))) == 8
assert "torch" not in sys.modules"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_conditions_that_make_one_run_of_two_are_refused() -> None:
    sweep = Sweep(
        name="s",
        methods=("classic",),
        axes={"num_steps": (2000, 3000)},
        conditions=(
            Condition(where={"num_steps": 2000}, set={"num_steps": 3000}),
            Condition(where={"num_steps": 3000}, set={"batch_size": 64}),
        ),
    )
    with pytest.raises(UserError, match=r"run_seed = 0, task_seed = 0 and .* are the same run"):
        runs_of(sweep)


def test_more_runs_than_anybody_means_are_refused_with_the_number() -> None:
    with pytest.raises(UserError, match="'seeds' has 1,000,000 values, too many"):
        Sweep(name="s", methods=("classic",), seeds=tuple(range(1_000_000)))
    axes = {"optim.lr": tuple(range(1, 1001)), "num_steps": tuple(range(1000, 2000))}
    with pytest.raises(UserError, match="'s' has 1,000,000 runs, over 20,000"):
        runs_of(Sweep(name="s", methods=("classic",), axes=axes))
