"""The sweeps over IVON's recipes."""

import pytest

from epigrok.config import flatten, preset, to_json
from epigrok.sweeps.description import runs_of
from epigrok.sweeps.shipped import find_sweep

SEEDS = {"run_seed", "task_seed"}


@pytest.mark.parametrize(("name", "num_seeds"), [("ivon-recipes", 8), ("ivon-recipes-tiny", 5)])
def test_every_recipe_has_all_seeds_and_one_is_the_preset(name: str, num_seeds: int) -> None:
    sweep = find_sweep(name)
    flat = [flatten(to_json(config)) for config in runs_of(sweep).values()]
    assert len(flat) == num_seeds * len(sweep.variants)
    recipe = flatten(to_json(preset(sweep.methods[0])))
    same = {*sweep.overrides, *SEEDS}
    changes = [
        tuple((k, repr(v)) for k, v in run.items() if k not in same and recipe[k] != v)
        for run in flat
    ]
    assert changes.count(()) == num_seeds
    assert all(changes.count(change) == num_seeds for change in changes)
