"""A configuration as JSON, its run id, and the difference between two."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from epigrok.config import (
    AdamWConfig,
    OneParameterTask,
    ScheduleConfig,
    differing_fields,
    flatten,
    from_json,
    preset,
    presets,
    run_id,
    to_json,
)
from epigrok.config.overrides import with_fields
from epigrok.errors import UserError


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


def test_a_whole_number_is_the_same_run_as_its_fraction() -> None:
    whole, fraction = (
        run_id(with_fields(preset("classic"), {"optim.weight_decay": value})) for value in (1, 1.0)
    )
    assert whole == fraction
    whole, fraction = (
        run_id(replace(preset("classic"), optim=AdamWConfig(lr=value))) for value in (1, 1.0)
    )
    assert whole == fraction


def test_differing_fields_are_named_with_both_values() -> None:
    config = preset("icl-paper")
    other = replace(config, preset="x", optim=AdamWConfig(lr=1e-3), run_seed=2)
    assert differing_fields(config, other) == ["optim.lr: 0.00015 -> 0.001", "run_seed: 0 -> 2"]


def test_sections_become_dotted_names() -> None:
    assert flatten({"a": 1, "b": {"c": [2], "d": {"e": None}}}) == {
        "a": 1,
        "b.c": [2],
        "b.d.e": None,
    }


def test_a_field_that_a_file_does_not_have_takes_its_default() -> None:
    values = to_json(preset("classic"))
    del values["num_ladder_checkpoints"]
    del values["evaluation"]["oracle_noise"]
    assert from_json(values) == preset("classic")


def with_kind(section: str, kind: object) -> dict[str, object]:
    values = to_json(preset("classic"))
    return {**values, section: {**values[section], "kind": kind}}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_json({**to_json(preset("classic")), "colour": 1}), "unknown fields colour"),
        (lambda: from_json({"preset": "x"}), "missing fields task, model, optim"),
        (lambda: from_json({**to_json(preset("classic")), "num_steps": "40"}), "cannot be '40'"),
        (lambda: from_json({**to_json(preset("classic")), "schedule": 3}), "a section, got 3"),
        (lambda: from_json(with_kind("optim", "SGD")), "optim: kind 'SGD' is not one of AdamW"),
        (
            lambda: from_json(with_kind("task", "MyTask")),
            r"task: kind 'MyTask' is not one of .*ClassicTask.*load the plugin first \(--plug",
        ),
        (lambda: from_json(with_kind("model", None)), "model: kind None is not one of"),
        (lambda: from_json(with_kind("model", ["MLP"])), r"model: kind \['MLP'\] is not one of"),
        (lambda: from_json(with_kind("optim", {})), r"optim: kind \{\} is not one of AdamW"),
        (
            lambda: to_json(replace(preset("classic"), optim=AdamWConfig(clip_norm=math.inf))),
            "optim.clip_norm must be a finite number, got inf",
        ),
    ],
)
def test_mistakes_are_refused_with_the_offending_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.parametrize(("field", "value"), [("num_steps", 10**400), ("num_steps", 2**63)])
def test_a_whole_number_beyond_64_bits_is_refused(field: str, value: int) -> None:
    with pytest.raises(UserError, match=f"config.{field} cannot be"):
        from_json(to_json(preset("classic")) | {field: value})


def test_a_learning_rate_beyond_floats_is_refused() -> None:
    values = to_json(preset("classic"))
    with pytest.raises(UserError, match=r"config\.optim\.lr cannot be"):
        from_json(values | {"optim": values["optim"] | {"lr": 10**400}})
