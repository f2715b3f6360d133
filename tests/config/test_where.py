"""Choosing runs by their fields."""

import pytest

from epigrok.config.where import Where
from epigrok.errors import UserError

RUNS = [
    {"preset": "a", "task.tasks": 32, "optim.lr": 0.3, "task.zero": True, "optim.clip": None},
    {"preset": "a", "task.tasks": 64, "optim.lr": 1.0, "task.zero": False, "optim.clip": 1},
    {"preset": "b-ivon", "task.tasks": 64, "optim.lr": 0.3, "task.zero": True},
]


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        ([], [0, 1, 2]),
        (["preset=a"], [0, 1]),
        (["preset=b-ivon"], [2]),
        (["task.tasks=64"], [1, 2]),
        (["task.tasks=32,64", "optim.lr=0.3"], [0, 2]),
        (["optim.lr=1"], [1]),
        (["task.zero=true"], [0, 2]),
        (["optim.clip=1"], [1]),
    ],
)
def test_all_conditions_hold_for_what_is_chosen(texts: list[str], chosen: list[int]) -> None:
    assert Where.parse(texts).choose(RUNS) == [RUNS[k] for k in chosen]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["task.tasks"], "'task.tasks' is not a condition; write FIELD=VALUE"),
        (["=3"], "'=3' is not a condition"),
        (["preset="], "'preset=' is not a condition"),
        (["preset=a", "preset=b"], "preset is given twice; for any of several values"),
        (
            ["task.task=3"],
            "no run has a field 'task.task'; there are: optim.clip, optim.lr, preset",
        ),
        (["task.tasks=3"], "no run has task.tasks = 3; there are: 32, 64"),
        (["task.zero=1"], "no run has task.zero = 1; there are: True, False"),
        (["preset=b-ivon", "task.tasks=32"], "no run has all of preset = b-ivon, task.tasks = 32"),
    ],
)
def test_mistakes_name_what_there_is(texts: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        Where.parse(texts).choose(RUNS)
    assert message in str(error.value)


def test_conditions_can_be_read_aloud() -> None:
    assert Where.parse(["a=1,2", "b=x"]).text == "a = 1 or 2, b = x"
    assert Where.parse([]).text == ""
