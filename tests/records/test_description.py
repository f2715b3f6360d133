"""`run.json`: what it tells survives the disk, and anything else is refused in a sentence."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epigrok.columns import Column
from epigrok.config.splits import ID_TRAIN, OOD_VAL
from epigrok.errors import UserError
from epigrok.files import write_json
from epigrok.records.description import (
    FORMAT,
    NeededPlugin,
    RunDescription,
    TrackedPosterior,
    description_from_json,
)
from epigrok.records.directory import RunDirectory

PATH = Path("somewhere/run.json")
FACT = {"name": "x", "type": "number", "meaning": "x", "unit": ""}
DESCRIPTION = RunDescription(
    num_classes=31,
    num_examples=6,
    splits=(ID_TRAIN, replace(OOD_VAL, name="mine")),
    posteriors=(
        TrackedPosterior("point", "point", ()),
        TrackedPosterior("mine:3", "control", (Column("width", "number", "its width", "nats"),)),
    ),
    plugins=(NeededPlugin("mine.py", "0123", ("posterior mine:3",)),),
)


def test_a_description_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", DESCRIPTION.to_json())
    assert RunDirectory(tmp_path).description() == DESCRIPTION


@pytest.mark.parametrize("number", [None, 0, FORMAT + 1, str(FORMAT)])
def test_another_format_is_refused_with_what_to_do(number: object) -> None:
    values = DESCRIPTION.to_json() | {"format": number}
    with pytest.raises(UserError) as error:
        description_from_json(values, PATH)
    assert f"{PATH} has format {number!r}" in str(error.value)
    assert f"reads format {FORMAT}; train the run again" in str(error.value)


@pytest.mark.parametrize("values", [[], "1", None, 3])
def test_what_is_no_object_has_no_format(values: object) -> None:
    with pytest.raises(UserError, match="has format None"):
        description_from_json(values, PATH)


@pytest.mark.parametrize(
    "change",
    [
        {"num_classes": "31"},
        {"num_examples": True},
        {"splits": 3},
        {"splits": [{"name": "x"}]},
        {"posteriors": [{"name": "point", "role": "point"}]},
        {"posteriors": [{"name": "p", "role": "point", "facts": [{"label": "x"}]}]},
        {"posteriors": [{"name": "p", "role": "point", "facts": [FACT | {"type": "colour"}]}]},
        {"posteriors": [{"name": "p", "role": "point", "facts": [FACT | {"name": {}}]}]},
        {"plugins": [{"file": "x.py"}]},
        {"plugins": None},
    ],
)
def test_a_damaged_description_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"somewhere/run\.json is damaged: \w+Error"):
        description_from_json(DESCRIPTION.to_json() | change, PATH)


@pytest.mark.parametrize(
    "change", [{"name": 3}, {"meaning": None}, {"tasks_seen": "no"}, {"inputs_seen": 1}]
)
def test_a_split_of_other_kinds_is_refused_also_where_nobody_checks_types(
    change: dict[str, Any],
) -> None:
    (split, *_) = DESCRIPTION.to_json()["splits"]
    script = f"""from pathlib import Path
from epigrok.records.description import description_from_json
description_from_json({DESCRIPTION.to_json() | {"splits": [split | change]}!r}, Path("run.json"))"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "UserError: run.json is damaged: TypeError: {'name':" in ended.stderr


def test_a_description_without_an_entry_is_refused() -> None:
    values = DESCRIPTION.to_json()
    del values["splits"]
    with pytest.raises(UserError, match="is damaged: KeyError: 'splits'"):
        description_from_json(values, PATH)
