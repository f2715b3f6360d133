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
        (["task.zero=1"], "no run has task.zero = 1; there are: true, false"),
        (["preset=b-ivon", "task.tasks=32"], "no run has all of preset = b-ivon, task.tasks = 32"),
    ],
)
def test_mistakes_name_what_there_is(texts: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        Where.parse(texts).choose(RUNS)
    assert message in str(error.value)


@pytest.mark.parametrize("run_id", ["123456789012", "641702862e98", "000000000000", "1f0cc27d2ca4"])
def test_an_id_that_looks_like_a_number_is_chosen_all_the_same(run_id: str) -> None:
    runs = [{"run_id": run_id, "run_seed": 0}, {"run_id": "another", "run_seed": 0}]
    assert Where.parse([f"run_id={run_id}"]).choose(runs) == runs[:1]


def test_a_list_is_one_value() -> None:
    lists = [["point"], ["point", "ivon"], ["laplace"]]
    runs = [{"evaluation.posteriors": names} for names in lists]
    chosen = Where.parse(['evaluation.posteriors=["point", "ivon"],["laplace"]']).choose(runs)
    assert chosen == runs[1:]
    with pytest.raises(UserError, match=r'there are: \["point"\], \["point", "ivon"\]'):
        Where.parse(["evaluation.posteriors=point"]).choose(runs)


def test_conditions_can_be_read_aloud() -> None:
    assert Where.parse(["a=1,2", "b=x"]).text == "a = 1 or 2, b = x"
    assert Where.parse([]).text == ""
