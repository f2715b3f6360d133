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
