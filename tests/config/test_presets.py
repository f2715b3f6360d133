"""The shipped recipes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from epigrok.config import (
    AdamWConfig,
    IVONConfig,
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
    assert (task.train_fraction, task.construction) == (0.8, "parallelogram")
    assert task.shares_inputs
    evaluation = config.evaluation
    assert (evaluation.num_samples, evaluation.num_final_samples) == (16, 64)
    # Laplace takes its prior precision from the weight decay, here that of the tied head.
    assert "laplace" in evaluation.posteriors
    assert optim.head_weight_decay == 1.0


def test_the_papers_ivon_preset_is_the_papers_table() -> None:
    config, of_map = preset("icl-paper-ivon"), preset("icl-paper")
    optim = config.optim
    assert isinstance(optim, IVONConfig)
    assert (optim.lr, optim.betas, optim.hess_init) == (0.5, (0.9, 0.99999), 1.0)
    assert (optim.clip_radius, optim.num_train_samples, optim.clip_norm) == (1e-3, 1, None)
    # 1e-5 in the text, 1e-6 in the table.
    assert optim.weight_decay == 1e-5
    schedule = config.schedule
    assert (schedule.warmup_steps, schedule.initial_scale, schedule.final_scale) == (
        2000,
        0.01,
        0.1,
    )
    # The number of training inputs times that of training tasks.
    assert optim.effective_sample_size(config.task.num_training_points) == 673 * 256
    for shared in ("task", "model", "num_steps", "batch_size", "precision"):
        assert getattr(config, shared) == getattr(of_map, shared)
    evaluation = config.evaluation
    assert (evaluation.num_samples, evaluation.num_final_samples) == (16, 64)
    assert "ivon" in evaluation.posteriors


@pytest.mark.parametrize("name", presets())
def test_a_preset_knows_its_name_and_tracks_posteriors_that_exist(name: str) -> None:
    config = preset(name)
    assert config.preset == name
    require_posteriors(config)
    assert summary_of_preset(name).endswith((".", ":")), "a summary is one whole line"


def test_an_unknown_preset_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UserError, match=r"'icl-huge'; there are: classic, .*icl-paper-ivon"):
        preset("icl-huge")


@pytest.mark.parametrize(
    "changed",
    [
        lambda: preset("icl-tiny", num_steps=300, optim__lr=0.02, task__num_train_tasks=12),
        lambda: preset("icl-tiny", {"num-steps": 300, "optim.lr": 0.02}, task__num_train_tasks=12),
        lambda: preset(
            "icl-tiny", {"num_steps": 300, "optim.lr": 0.02, "task.num-train-tasks": 12}
        ),
    ],
)
def test_a_preset_takes_changes_by_the_names_of_the_command_line(
    changed: Callable[[], RunConfig],
) -> None:
    config, recipe = changed(), preset("icl-tiny")
    assert (config.num_steps, config.optim.lr, config.task.num_train_tasks) == (300, 0.02, 12)
    assert config == replace(
        recipe,
        num_steps=300,
        optim=replace(recipe.optim, lr=0.02),
        task=replace(recipe.task, num_train_tasks=12),
    )


@pytest.mark.parametrize(
    ("changes", "fields", "message"),
    [
        ({}, {"optim__colour": 1}, "'icl-tiny' has no field 'optim.colour'; optim has lr"),
        ({"optim.lr": "fast"}, {}, "optim.lr cannot be 'fast'"),
        ({"optim.lr": 0.1}, {"optim__lr": 0.2}, "optim.lr is given twice, as 0.1 and as 0.2"),
        ({}, {"num_steps": 50}, "warm-up"),
        ({}, {"optim": AdamWConfig()}, "'optim' is a section; name one of its fields"),
    ],
)
def test_a_change_that_a_preset_cannot_take_is_one_sentence(
    changes: dict[str, object], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as found:
        preset("icl-tiny", changes, **fields)
    assert "\n" not in str(found.value)


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
