"""The sweeps that ship with the package."""

import json
from collections import Counter
from pathlib import Path

import pytest

from epigrok.config import flatten, preset, to_json
from epigrok.errors import UserError
from epigrok.posteriors import require_posteriors
from epigrok.sweeps.description import runs_of, sweep_from_json, sweep_to_json
from epigrok.sweeps.shipped import SWEEPS, find_sweep


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
        assert changed <= allowed | {"task_seed", "evaluation.final_series"}
        assert config.evaluation.final_series == ("context-length", "context-noise")


def test_the_small_grid_compares_two_methods_on_equal_terms() -> None:
    runs = list(runs_of(find_sweep("paper-small")).values())
    of_method = {
        name: {(c.task, c.run_seed): c for c in runs if c.preset == name}
        for name in ("icl-small", "icl-small-ivon")
    }
    one, other = of_method.values()
    assert one.keys() == other.keys()
    assert len(one) == len(other) == 5 * 3 * 4
    for key, config in one.items():
        for equal in ("num_steps", "batch_size", "schedule", "model", "task_seed", "precision"):
            assert getattr(config, equal) == getattr(other[key], equal), equal
        assert config.task_seed == 0
    steps = sum(config.num_steps for config in one.values())
    assert steps <= 600_000


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("paper-small", {"num_base_tasks": 32, "train_fraction": 0.8}),
        ("paper-tiny", {"num_train_tasks": 26, "train_fraction": 0.8}),
    ],
)
def test_a_grid_scales_ess_with_the_training_set_and_its_control_does_not(
    name: str, largest: dict[str, float]
) -> None:
    grid = [c for c in runs_of(find_sweep(name)).values() if "ivon" in c.preset]
    assert len({round(1e6 * c.optim.ess / c.task.num_training_points) for c in grid}) == 1
    fixed = runs_of(find_sweep(f"{name}-fixed-ess")).values()
    assert {c.optim.ess for c in fixed} == {preset(c.preset).optim.ess for c in fixed}
    # Where both agree in ESS they are the same task, seed and length.
    cell = [c for c in grid if all(getattr(c.task, k) == v for k, v in largest.items())]
    twins = {(c.task, c.run_seed): c for c in fixed}
    assert len(cell) == 4
    for config in cell:
        twin = twins[config.task, config.run_seed]
        assert (twin.optim, twin.num_steps, twin.task_seed) == (config.optim, config.num_steps, 0)


def test_the_grid_for_a_laptop_gives_both_methods_the_same_tasks() -> None:
    runs = runs_of(find_sweep("paper-tiny")).values()
    tasks = Counter((c.preset, c.task, c.task_seed, c.run_seed) for c in runs)
    assert set(tasks.values()) == {1}
    of_map, of_ivon = (
        {key[1:] for key in tasks if ("ivon" in key[0]) is is_ivon} for is_ivon in (False, True)
    )
    assert of_map == of_ivon
    assert len(of_map) == 4 * 3 * 4


def test_the_sweep_of_fates_is_one_setting() -> None:
    runs = list(runs_of(find_sweep("fates-small")).values())
    assert [(c.run_seed, c.task_seed) for c in runs] == [(seed, seed) for seed in range(64)]
    recipe = preset("icl-small")
    for config in runs:
        for equal in ("task", "model", "optim", "schedule", "num_steps", "batch_size"):
            assert getattr(config, equal) == getattr(recipe, equal)


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


@pytest.mark.parametrize("name", SWEEPS)
def test_shipped_sweeps_survive_json(name: str) -> None:
    sweep = find_sweep(name)
    assert sweep_from_json(json.loads(json.dumps(sweep_to_json(sweep)))) == sweep


def test_the_smoke_sweep_has_every_kind_of_method() -> None:
    runs = runs_of(find_sweep("smoke")).values()
    assert len(runs) >= 8
    for config in runs:
        require_posteriors(config)
    kinds = {type(config.optim).__name__ for config in runs}
    assert {"AdamWConfig", "IVONConfig"} <= kinds


def test_a_name_or_a_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"methods": ["classic"]}))
    assert find_sweep(str(file)).name == "mine"
    assert find_sweep("smoke").name == "smoke"
    with pytest.raises(UserError, match="no sweep named 'papre' and no such file; there are: cont"):
        find_sweep("papre")
