"""The paper's grid at four sizes: what its runs have in common, and what they differ in."""

from collections import Counter

import pytest

from epigrok.config import flatten, preset, to_json
from epigrok.sweeps.description import runs_of
from epigrok.sweeps.shipped import find_sweep


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
