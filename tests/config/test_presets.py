"""The shipped recipes."""

from dataclasses import replace

import pytest

from epigrok.config import (
    AdamWConfig,
    RunConfig,
    TransformerConfig,
    TwoParameterTask,
    departures_from_recipe,
    preset,
    presets,
    register_preset,
)
from epigrok.config.presets import summary_of_preset
from epigrok.errors import UserError
from epigrok.posteriors import require_posteriors


def test_the_paper_preset_is_the_papers_table() -> None:
    config = preset("icl-paper")
    task, model, optim = config.task, config.model, config.optim
    assert isinstance(task, TwoParameterTask)
    assert isinstance(model, TransformerConfig)
    assert isinstance(optim, AdamWConfig)
    assert (task.modulus, task.num_train_tasks, task.num_ood_tasks) == (29, 256, 256)
    assert (task.num_examples, task.num_examples * task.example_length) == (32, 96)
    assert (model.num_layers, model.num_heads, model.width) == (6, 4, 512)
    assert model.feedforward_width == 2048
    assert (optim.lr, optim.betas, optim.eps) == (1.5e-4, (0.9, 0.98), 1e-8)
    assert (optim.weight_decay, optim.clip_norm) == (1.0, 1.0)
    schedule = config.schedule
    assert (schedule.warmup_steps, schedule.initial_scale, schedule.final_scale) == (
        1000,
        0.01,
        0.1,
    )
    assert (config.batch_size, config.num_steps) == (1024, 100_000)
    # The effective sample size the paper derives for this setting.
    assert task.num_training_points == 673 * 256


@pytest.mark.parametrize("name", presets())
def test_a_preset_knows_its_name_and_tracks_posteriors_that_exist(name: str) -> None:
    config = preset(name)
    assert config.preset == name
    require_posteriors(config)
    assert summary_of_preset(name).endswith((".", ":")), "a summary is one whole line"


def test_an_unknown_preset_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UserError, match=r"'icl-huge'; there are: classic, .*icl-paper-ivon"):
        preset("icl-huge")


def test_a_preset_cannot_take_anothers_name() -> None:
    def mine() -> RunConfig:
        return replace(preset("icl-tiny"), preset="classic")

    with pytest.raises(UserError, match=r"'classic' is registered already, by epigrok\.config"):
        register_preset("classic")(mine)
    assert preset("classic").model != preset("icl-tiny").model


def test_departures_from_a_recipe_are_named() -> None:
    config = preset("icl-paper")
    assert departures_from_recipe(config) == []
    assert departures_from_recipe(replace(config, run_seed=3, num_steps=10_000)) == []
    changed = replace(config, batch_size=256, optim=AdamWConfig(weight_decay=0.5))
    assert departures_from_recipe(changed) == [
        "batch size 256 instead of 1024",
        "weight decay 0.5 instead of 1",
    ]
    assert departures_from_recipe(replace(changed, preset="somebody's own")) == []
