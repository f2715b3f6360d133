"""Whatever a configuration or a sweep file says: success or one sentence, within seconds."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from called_command import told
from damaged_files import DEEP, VALUES, Damage, changed_document
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from epigrok.config import from_json, preset, presets, run_id, to_json
from epigrok.errors import UserError

NUM_SHARDS, NUM_EACH = 4, 150
FIELDS = ("task.modulus", "batch_size", "num_steps", "task.num_examples", "optimiser.learning_rate")
SWEEP = {
    "name": "grid",
    "methods": ["classic", "icl-tiny"],
    "variants": ["plain"],
    "axes": {"num_steps": [3000, 4000], "evaluation.posteriors": [["point"], ["laplace"]]},
    "seeds": [0, 1],
    "overrides": {"batch_size": 128},
    "conditions": [{"where": {"preset": "classic"}, "set": {"schedule.warmup_steps": 20}}],
}
CHANGES = st.lists(
    st.builds(
        Damage,
        name=st.just(""),
        kind=st.sampled_from(("value", "value", "key")),
        value=VALUES | st.sampled_from((*FIELDS, 10**18 + 9, 2 * 10**9, list(range(10**5)))),
        chance=st.integers(0, 2**32),
    ),
    min_size=1,
    max_size=3,
)
Record = Callable[[str, object], None]


def changed(document: Any, changes: list[Damage]) -> str:
    """A JSON document after some changes; its values may be Infinity and NaN."""
    text = json.dumps(document)
    for change in changes:
        text = changed_document(text.encode(), change, random.Random(change.chance)).decode()
    return text


def assert_configuration_is_whole_or_refused(name: str, changes: list[Damage]) -> bool:
    values = json.loads(changed(to_json(preset(name)), changes))
    try:
        config = from_json(values)
    except UserError:
        return False
    assert run_id(from_json(to_json(config))) == run_id(config)
    return True


def assert_sweep_is_planned_or_refused(folder: Path, text: str) -> bool:
    file = folder / "sweep.json"
    file.write_text(text)
    exit_code, printed = told(["sweep", str(file), "--dry-run", "--steps-per-second", "100"])
    assert exit_code in (0, 2), printed
    assert "Traceback" not in printed
    assert "\x1b" not in printed
    assert printed.strip()
    assert [path.name for path in folder.iterdir()] == ["sweep.json"]
    return exit_code == 0


@pytest.mark.parametrize("text", ["", "[", "7", DEEP, '{"methods": 1e999}', '{"a":1,"a":2}', "\0"])
def test_what_is_no_sweep_is_refused(text: str, tmp_path: Path) -> None:
    assert not assert_sweep_is_planned_or_refused(tmp_path, text)


@pytest.mark.fuzz
@pytest.mark.parametrize("shard", range(NUM_SHARDS))
def test_hundreds_of_configurations_and_sweep_files(
    shard: int, tmp_path: Path, record_property: Record
) -> None:
    counts = {
        kind: {"tried": 0, "accepted": 0, "refused": 0}
        for kind in ("configurations", "sweep files")
    }

    @seed(shard)
    @settings(
        max_examples=NUM_EACH,
        derandomize=False,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(name=st.sampled_from(sorted(presets())), changes=CHANGES)
    def check(name: str, changes: list[Damage]) -> None:
        sweep = changed(SWEEP, changes)
        for kind, is_accepted in (
            ("configurations", assert_configuration_is_whole_or_refused(name, changes)),
            ("sweep files", assert_sweep_is_planned_or_refused(tmp_path, sweep)),
        ):
            counts[kind]["tried"] += 1
            counts[kind]["accepted" if is_accepted else "refused"] += 1

    check()
    for kind, counted in counts.items():
        record_property(kind, counted)
