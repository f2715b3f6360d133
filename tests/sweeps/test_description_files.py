"""Descriptions of sweeps in files: JSON and TOML."""

import json
from pathlib import Path

import pytest

from epigrok.errors import UserError
from epigrok.sweeps.description import Sweep, runs_of
from epigrok.sweeps.description_files import EXAMPLE, read_sweep

IN_TOML = """
methods = ["classic", "classic-ivon"]  # a comment
seeds = [0, 1]
[axes]
optim.lr = [0.001, 0.002]
"task.train_fraction" = [0.3]
[overrides.evaluation]
every = 20
posteriors = ["point"]
[[conditions]]
where = { preset = "classic", optim.lr = 0.002 }
set.num_steps = 100
"""
IN_JSON = {
    "methods": ["classic", "classic-ivon"],
    "seeds": [0, 1],
    "axes": {"optim.lr": [0.001, 0.002], "task.train_fraction": [0.3]},
    "overrides": {"evaluation.every": 20, "evaluation.posteriors": ["point"]},
    "conditions": [{"where": {"preset": "classic", "optim.lr": 0.002}, "set": {"num_steps": 100}}],
}


def read(tmp_path: Path, name: str, content: str) -> Sweep:
    file = tmp_path / name
    file.write_text(content)
    return read_sweep(file)


def test_both_kinds_of_file_say_the_same(tmp_path: Path) -> None:
    sweep = read(tmp_path, "grid.toml", IN_TOML)
    assert sweep == read(tmp_path, "grid.json", json.dumps(IN_JSON))
    assert sweep.name == "grid"
    assert len(runs_of(sweep)) == 8


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "sweep.json",
            '{"methods": ["icl"], "axes": {"optim.lr": [1], "num_steps": [5], "optim.lr": [2]}}',
            "is not valid JSON: 'optim.lr' is there twice",
        ),
        ("sweep.json", "[" * 100_000, "is not valid JSON"),
        ("sweep.toml", "methods = [" + "[" * 100_000, "is not valid TOML"),
        ("sweep.toml", "methods = ['classic']\nmethods = ['icl-tiny']", "is not valid TOML"),
        (
            "sweep.toml",
            "methods = ['classic']\naxes.optim.lr = [1]\naxes.'optim.lr' = [2]",
            "is not valid TOML: 'optim.lr' is there twice",
        ),
        (
            "sweep.toml",
            "methods = ['classic']\n[[conditions]]\nwhere.a.b = 1\nwhere.'a.b' = 2\nset = {}",
            "is not valid TOML: 'a.b' is there twice",
        ),
        ("sweep.toml", '{"methods": ["classic"]}', "is not valid TOML"),
        ("sweep.toml", "seeds = [0]", "'methods' is missing"),
        ("sweep.toml", "methods = ['classic']\nseed = [0]", "unknown entries seed"),
        ("sweep.toml", "methods = ['classic']\nconditions = [1]", "a condition must be an object"),
        ("sweep.toml", "methods = ['classic']\naxes = 3", "'axes' must be an object"),
        ("sweep.toml", "methods = ['classic']\nname = 2026-01-01", "'name' must be a string"),
    ],
)
def test_mistakes_are_one_sentence(name: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, name, content)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", ["2026-01-01", "nan", "[[2026-01-01T00:00:00]]", "{}"])
def test_values_that_only_toml_has_are_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"num_steps|overrides|is there"):
        runs_of(
            read(tmp_path, "sweep.toml", f"methods = ['classic']\noverrides.num_steps = {value}")
        )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in ("missing.toml", "missing.json"):
        with pytest.raises(UserError, match=f"cannot read .*{name}"):
            read_sweep(tmp_path / name)
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(UserError, match="is not valid TOML"):
        read_sweep(tmp_path / "latin.toml")


def test_the_example_is_a_sweep_whose_every_part_counts() -> None:
    sweep = read_sweep(EXAMPLE)
    runs = runs_of(sweep)
    assert len(runs) == 2 * 2 * 2 * 2
    assert {config.num_steps for config in runs.values()} == {1000, 2000}
