"""Settings that make no sense are refused, and so are looks that were made with others."""

import json
from dataclasses import asdict

import pytest

from epigrok.errors import UserError
from epigrok.monitor import MonitorSettings, StateRule


def test_no_fewer_rows_are_read_than_a_ratio_needs() -> None:
    """What is of the wrong kind is refused too: `test_monitor.py` tries that without our checks."""
    with pytest.raises(UserError, match="num_rows 63 is too few: below 64"):
        MonitorSettings(num_rows=63)
    assert MonitorSettings(num_rows=64).num_rows == 64


def test_the_same_settings_are_known_again_after_they_were_written() -> None:
    settings = MonitorSettings(rule=StateRule(seen_steady_from=None))
    settings.require_like(json.loads(json.dumps(asdict(settings))))


def test_every_difference_is_named() -> None:
    saved = asdict(MonitorSettings(num_rows=128, rule=StateRule(threshold=0.4)))
    with pytest.raises(UserError) as caught:
        MonitorSettings().require_like(saved)
    assert str(caught.value) == (
        "the saved monitor looked in another way: num_rows was 128 and is 256 here; "
        "rule.threshold was 0.4 and is 0.37 here"
    )
