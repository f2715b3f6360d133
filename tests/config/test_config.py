"""Configurations: presets, JSON, run ids, and mistakes as one sentence."""

import dataclasses
import json
import math

import pytest

from epigrok.config import (
    AdamWConfig,
    EvaluationConfig,
    MuonConfig,
    OneParameterTask,
    RunConfig,
    ScheduleConfig,
    TransformerConfig,
    TwoParameterTask,
    departures_from_recipe,
    differing_fields,
    from_json,
    preset,
    presets,
    run_id,
    to_json,
)
from epigrok.config.overrides import with_fields
from epigrok.errors import UserError

replace = dataclasses.replace


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
def test_a_config_survives_json(name: str) -> None:
    config = preset(name)
    restored = from_json(json.loads(json.dumps(to_json(config))))
    assert restored == config
    assert run_id(restored) == run_id(config)


def test_run_ids_name_what_is_computed_and_nothing_else() -> None:
    config = preset("icl-tiny")
    assert run_id(replace(config, preset="other")) == run_id(config)
    changed = [
        replace(config, run_seed=1),
        replace(config, task=OneParameterTask(num_train_tasks=6)),
        replace(config, schedule=ScheduleConfig(warmup_steps=50)),
    ]
    assert len({run_id(variant) for variant in [config, *changed]}) == 4


def test_differing_fields_are_named_with_both_values() -> None:
    config = preset("icl-paper")
    other = replace(config, optim=AdamWConfig(lr=1e-3), run_seed=2)
    assert differing_fields(config, other) == ["optim.lr: 0.00015 -> 0.001", "run_seed: 0 -> 2"]


def test_departures_from_a_recipe_are_named() -> None:
    config = preset("icl-paper")
    assert departures_from_recipe(config) == []
    assert departures_from_recipe(replace(config, run_seed=3, num_steps=10_000)) == []
    changed = replace(config, batch_size=256, optim=AdamWConfig(weight_decay=0.5))
    assert departures_from_recipe(changed) == [
        "batch size 256 instead of 1024",
        "weight decay 0.5 instead of 1",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TwoParameterTask(modulus=30), "30"),
        (lambda: TwoParameterTask(train_fraction=1.0), "1.0"),
        (lambda: TwoParameterTask(train_fraction=0.0), "0.0"),
        (lambda: TwoParameterTask(modulus=5, num_base_tasks=7), "only 25 exist"),
        (lambda: TwoParameterTask(modulus=2, num_base_tasks=1), "num_ood_tasks to 0"),
        (lambda: OneParameterTask(num_train_tasks=30), "only 30 exist"),
        (lambda: replace(preset("icl-paper"), batch_size=1000), "1000"),
        (lambda: replace(preset("classic"), batch_size=5000), "5000"),
        (lambda: replace(preset("icl-paper"), num_steps=10), "warm-up"),
        (
            lambda: replace(
                preset("icl-paper"), task=OneParameterTask(), model=preset("classic").model
            ),
            "MLP",
        ),
        (lambda: preset("icl-huge"), "icl-huge"),
        (lambda: AdamWConfig(lr=0.0), "lr"),
        (lambda: AdamWConfig(betas=(0.9, 1.0)), "1.0"),
        (lambda: MuonConfig(momentum=1.0), "momentum must lie"),
        (lambda: MuonConfig(momentum=-0.1), "momentum must lie"),
        (lambda: EvaluationConfig(posteriors=("point", "point")), "listed twice in point, point"),
        (lambda: EvaluationConfig(posteriors=("weight-noise:0.1", "weight-noise:1e-1")), "twice"),
        (lambda: TransformerConfig(width=510), "510"),
        (lambda: EvaluationConfig(num_samples=65), "num_final_samples 64"),
        (
            lambda: replace(preset("icl-tiny"), optim=MuonConfig(adamw_weight_decay=0.0)),
            "head's weight decay as prior precision, which is 0",
        ),
        (lambda: from_json({**to_json(preset("classic")), "colour": 1}), "colour"),
        (lambda: from_json({"preset": "x"}), "missing"),
        (lambda: run_id(with_fields(preset("classic"), {"run_seed": 2**63})), "64-bit integer"),
        (lambda: EvaluationConfig(posteriors=("point:",)), "no value after the colon"),
        (
            lambda: with_fields(
                preset("icl-tiny"),
                {"task.num_examples": 1, "evaluation.final_sweeps": ["context-noise"]},
            ),
            "no context to vary",
        ),
        (
            lambda: to_json(
                dataclasses.replace(preset("classic"), optim=AdamWConfig(clip_norm=math.inf))
            ),
            "optim.clip_norm must be a finite number, got inf",
        ),
        (lambda: from_json({**to_json(preset("classic")), "num_steps": "40"}), "cannot be '40'"),
    ],
)
def test_mistakes_are_refused_with_the_offending_value(make: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make()  # type: ignore[operator]


def test_a_world_without_unseen_tasks_can_be_asked_for() -> None:
    task = TwoParameterTask(modulus=2, num_base_tasks=1, num_ood_tasks=0, train_fraction=0.5)
    assert task.splits == ("id_train", "id_val")


def test_configs_cannot_be_assigned_to() -> None:
    config: RunConfig = preset("classic")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.run_seed = 1  # type: ignore[misc]


def test_a_whole_number_is_the_same_run_as_its_fraction() -> None:
    whole, fraction = ({"optim.weight_decay": value} for value in (1, 1.0))
    runs = [run_id(with_fields(preset("classic"), changes)) for changes in (whole, fraction)]
    assert runs[0] == runs[1]
    assert run_id(dataclasses.replace(preset("classic"), optim=AdamWConfig(lr=1))) == run_id(
        dataclasses.replace(preset("classic"), optim=AdamWConfig(lr=1.0))
    )
