"""Changing fields by their dotted names."""

import pytest

from epigrok.config import preset
from epigrok.config.overrides import with_fields
from epigrok.errors import UserError


def test_fields_of_any_depth_are_changed_and_the_rest_stays() -> None:
    config = preset("icl-tiny")
    changed = with_fields(
        config, {"run_seed": 3, "optim.lr": 1, "evaluation.final_series": ["context-noise"]}
    )
    assert (changed.run_seed, changed.optim.lr) == (3, 1.0)
    assert changed.evaluation.final_series == ("context-noise",)
    assert with_fields(
        changed, {"run_seed": 0, "optim.lr": 0.04, "evaluation.final_series": []}
    ) == (config)


def test_changes_are_checked_together() -> None:
    changes = {"num_steps": 50, "schedule.warmup_steps": 5}
    with pytest.raises(UserError, match="warm-up"):
        with_fields(preset("icl-tiny"), {"num_steps": 50})
    assert with_fields(preset("icl-tiny"), changes).num_steps == 50


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("colour", 1, "'icl-tiny' has no field 'colour'; a run has preset, task"),
        ("optim.colour", 1, "no field 'optim.colour'; optim has lr, momentum"),
        ("nothing.lr", 1, "no field 'nothing.lr'$"),
        ("preset", "x", "no field 'preset'"),
        ("optim", {}, r"'optim' is a section; name one of its fields, as in 'optim\.lr'"),
        ("num_steps", 1.5, r"^num_steps cannot be 1.5"),
        ("optim.lr", "fast", r"^optim.lr cannot be 'fast'"),
        ("optim.lr", float("nan"), r"^optim.lr cannot be nan"),
        ("precision", "float64", r"^precision cannot be 'float64'"),
        ("optim.betas", [0.9], r"^optim.betas cannot be \[0.9\]"),
        ("num_steps", True, r"^num_steps cannot be True"),
    ],
)
def test_mistakes_are_refused_with_name_and_value(name: str, value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        with_fields(preset("icl-tiny"), {name: value})
