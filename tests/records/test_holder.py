"""Who a lease says it belongs to, and what becomes of one that says nonsense."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from epigrok.records.holder import (
    LEASE,
    LEASE_SECONDS,
    holder_at,
    read_holder,
    this_machine,
    token_at,
)

VALID = {
    "token": "0a-1",
    "host": "here",
    "machine": "elsewhere",
    "pid": 3,
    "process_start": "1",
    "job": "",
    "job_restarts": 0,
    "seconds": 30.0,
}


def test_a_lease_tells_its_holder_and_its_age(tmp_path: Path) -> None:
    assert read_holder(tmp_path) is None
    assert token_at(tmp_path / LEASE) is None
    (tmp_path / LEASE).write_text(json.dumps(VALID))
    os.utime(tmp_path / LEASE, (1000.0, 1000.0))
    holder = read_holder(tmp_path)
    assert holder is not None
    assert str(holder) == "process 3 on here"
    assert holder.is_alive(now=1030.0)
    assert not holder.is_alive(now=1031.0)


OF_ANOTHER_KIND: list[dict[str, object]] = [
    {"token": "../../x"},
    {"token": 3},
    {"pid": "3"},
    {"pid": None},
    {"seconds": "long"},
    {"seconds": None},
    {"job": 4},
    {"job_restarts": "1"},
    {"machine": this_machine(), "pid": [1]},
]


@pytest.mark.parametrize("change", OF_ANOTHER_KIND)
def test_a_lease_with_a_part_of_another_kind_counts_by_its_age(
    change: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / LEASE
    path.write_text(json.dumps(VALID | change))
    os.utime(path, (1000.0, 1000.0))
    holder = holder_at(path)
    assert holder is not None
    assert holder.token.startswith("unreadable-")
    assert holder.is_alive(now=1000.0 + LEASE_SECONDS)
    assert not holder.is_alive(now=1001.0 + LEASE_SECONDS)


def test_users_who_have_no_run_time_checks_of_types_are_safe_too(tmp_path: Path) -> None:
    """The checks of the tests would speak first."""
    for number, change in enumerate(OF_ANOTHER_KIND):
        (tmp_path / str(number)).write_text(json.dumps(VALID | change))
    script = f"""from pathlib import Path
from epigrok.records.holder import holder_at
for path in Path({str(tmp_path)!r}).iterdir():
    assert holder_at(path).token.startswith("unreadable-"), path.read_text()"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"NaN"])
def test_a_lease_that_is_no_object_counts_by_its_age(content: bytes, tmp_path: Path) -> None:
    (tmp_path / LEASE).write_bytes(content)
    holder = read_holder(tmp_path)
    assert holder is not None
    assert "is damaged and counts for 60 s" in str(holder)


def test_nobody_holds_a_lease_for_ever(tmp_path: Path) -> None:
    for seconds in (1e300, float("inf")):
        (tmp_path / LEASE).write_text(json.dumps(VALID | {"seconds": seconds}))
        os.utime(tmp_path / LEASE, (1000.0, 1000.0))
        holder = read_holder(tmp_path)
        assert holder is not None
        assert not holder.is_alive(now=1000.0 + 86_401.0)
