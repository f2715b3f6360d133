"""A sweep: what a description stands for, how it grows, and how mistakes in it are told."""

import json
from collections import Counter
from pathlib import Path

import pytest

from epigrok.cli import main
from epigrok.config import flatten, preset, run_id, to_json
from epigrok.config.overrides import with_fields
from epigrok.errors import UserError
from epigrok.experiments.builtin_sweeps import SWEEPS, find_sweep
from epigrok.experiments.run_files import run_directories
from epigrok.experiments.sweep import (
    Condition,
    Sweep,
    prepare,
    problem_with,
    read_sweep,
    recorded_sweeps,
    runs_of,
    sweep_from_json,
    sweep_to_json,
)


def test_the_paper_sweep_is_the_papers_grid() -> None:
    runs = runs_of(find_sweep("paper"))
    assert len(runs) == 240
    points = Counter(
        (config.preset, config.task.num_base_tasks, config.task.train_fraction)
        for config in runs.values()
    )
    assert len(points) == 2 * 5 * 6
    assert set(points.values()) == {4}
    assert {tasks for _, tasks, _ in points} == {8, 16, 32, 64, 128}
    assert {fraction for *_, fraction in points} == {0.3, 0.4, 0.5, 0.6, 0.7, 0.8}
    for config in runs.values():
        assert config.num_steps == (200_000 if config.task.num_base_tasks == 128 else 100_000)
        assert config.run_seed == config.task_seed
        recipe = flatten(to_json(preset(config.preset)))
        changed = {k for k, v in flatten(to_json(config)).items() if recipe[k] != v}
        allowed = {"task.num_base_tasks", "task.train_fraction", "num_steps", "run_seed"}
        assert changed <= allowed | {"task_seed", "evaluation.final_sweeps"}
        assert config.evaluation.final_sweeps == ("context-length", "context-noise")


def test_the_controls_sweep_changes_what_its_variants_say() -> None:
    runs = list(runs_of(find_sweep("controls")).values())
    assert len(runs) == 4 * 4 * 3
    changes = Counter()
    for config in runs:
        recipe, flat = flatten(to_json(preset(config.preset))), flatten(to_json(config))
        fields = (k for k, v in flat.items() if recipe[k] != v)
        ignored = ("evaluation.every", "evaluation.posteriors", "run_seed", "task_seed")
        changes[config.preset, *((k, flat[k]) for k in fields if k not in ignored)] += 1
        names = config.evaluation.posteriors
        assert ("laplace" in names) == (config.optim.weight_decay > 0)
        assert ("ivon" in names) == ("ivon-isotropic" in names) == ("ivon" in config.preset)
        assert {"point", "weight-noise:0.1", "laplace:1", "laplace:evidence"} <= set(names)
    no_decay, random_labels = ("optim.weight_decay", 0.0), ("task.random_labels", True)
    for name in ("classic", "classic-ivon"):
        assert changes[name, ("task.train_fraction", 0.2)] == 3
    for name in ("icl-tiny", "icl-tiny-ivon"):
        assert changes[name, ("task.num_train_tasks", 6)] == 3
    for name in ("classic", "classic-ivon", "icl-tiny", "icl-tiny-ivon"):
        assert changes[(name,)] == changes[name, random_labels] == 3
        muon = [("optim.adamw_weight_decay", 0.0)] if name == "icl-tiny" else []
        assert changes[name, no_decay, *muon] == 3


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


@pytest.mark.parametrize("name", SWEEPS)
def test_shipped_sweeps_survive_json(name: str) -> None:
    sweep = find_sweep(name)
    again = sweep_from_json(json.loads(json.dumps(sweep_to_json(sweep))))
    assert list(runs_of(again)) == list(runs_of(sweep))


def test_the_smoke_sweep_has_every_kind_of_method() -> None:
    runs = runs_of(find_sweep("smoke")).values()
    assert len(runs) >= 8
    kinds = {type(config.optim).__name__ for config in runs}
    assert {"AdamWConfig", "IVONConfig"} <= kinds


def test_fields_are_changed_all_at_once() -> None:
    # Either change alone would make the warm-up longer than the run.
    config = with_fields(preset("icl-paper"), {"num_steps": 10, "schedule.warmup_steps": 5})
    assert (config.num_steps, config.schedule.warmup_steps) == (10, 5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("optim.lrr", 1.0, "no field 'optim.lrr'; optim has lr, betas"),
        ("optimm.lr", 1.0, "no field 'optimm.lr'"),
        ("preset", "x", "no field 'preset'"),
        ("optim", {}, "'optim' is a section; name one of its fields, as in 'optim.lr'"),
        ("optim.lr", "fast", "optim.lr cannot be 'fast'"),
        ("optim.lr", float("inf"), "optim.lr cannot be inf"),
        ("optim.lr", True, "optim.lr cannot be True"),
        ("optim.lr", -1, "lr must be positive, got -1"),
        ("optim.betas", [0.9], "optim.betas cannot be"),
        ("optim.betas.0", 0.9, "no field 'optim.betas.0'"),
        ("num_steps", 1.5, "num_steps cannot be 1.5"),
        ("precision", "float16", "precision cannot be 'float16'"),
        ("evaluation.posteriors", ["point", 3], "evaluation.posteriors cannot be"),
        ("evaluation.posteriors", ["nowhere"], "no posterior named 'nowhere'"),
        ("__class__", 1, "no field '__class__'"),
    ],
)
def test_a_wrong_field_or_value_is_named(name: str, value: object, message: str) -> None:
    with pytest.raises(UserError) as error:
        with_fields(preset("icl-paper"), {name: value})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "a sweep is a JSON object"),
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
            "a condition holds for no run: num_steps = 300",
        ),
        (
            '{"methods": ["icl-paper"], "axes": {"task.num_base_tasks": [8, 300]}}',
            "at task.num_base_tasks = 300 of preset icl-paper: 1200 training tasks",
        ),
        (
            '{"methods": ["classic"], "variants": ["a", "b"]}',
            "no condition makes other runs of variant b",
        ),
        (
            '{"methods": ["classic"], "axes": {"optim.weight_decay": [1, 1.0]}}',
            "'optim.weight_decay' lists a value twice",
        ),
    ],
)
def test_mistakes_in_a_file_are_one_sentence(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sweep.json"
    file.write_text(content)
    assert main(["sweep", str(file), "--out", str(tmp_path / "out")]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_sweep_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "papre", "--dry-run"]) == 2
    assert "no sweep named 'papre' and no such file" in capsys.readouterr().err


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
    with pytest.raises(UserError, match="is not what `epigrok sweep` wrote there"):
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


def test_a_place_that_cannot_be_written_to_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "smoke", "--out", "/proc/sweep"]) == 2
    assert "cannot write to /proc/sweep" in capsys.readouterr().err


def test_a_dry_run_lists_axes_states_and_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "paper", "--dry-run", "--steps-per-second", "20"]) == 0
    text = capsys.readouterr().out
    assert "sweep paper: 240 runs" in text
    assert "task.num_base_tasks  8, 16, 32, 64, 128" in text
    assert "num_steps = 200000 where task.num_base_tasks = 128" in text
    # 192 runs of 100k steps and 48 of 200k.
    assert "steps left: 28,800,000" in text
    assert "device-hours: 400.0" in text
    assert main(["sweep", "smoke", "--out", str(tmp_path), "--dry-run"]) == 0
    assert "unknown for 8 runs" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_speeds_come_from_runs_of_the_same_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = list(prepare(tmp_path, find_sweep("smoke")).values())
    rows = [{"step": step, "seconds_training": 9.0, "seconds_evaluating": 1.0} for step in (0, 60)]
    (runs[0].path / "timings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs[0].mark_done()
    assert main(["sweep", "smoke", "--out", str(tmp_path), "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "done 1; queued 7" in text
    # The other seed has the same shape: 60 steps at 3 per second; six other runs are unknown.
    assert "unknown for 6 runs" in text
    assert "device-hours: 0.0 for the rest" in text
