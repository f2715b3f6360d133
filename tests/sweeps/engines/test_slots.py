"""Slots: places for runs on one machine."""

import os

import pytest

from epigrok.errors import UserError
from epigrok.sweeps.engines.slots import default_slots, num_cores, parse_slots


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("cpu", [("cpu", "")]),
        ("cpu*2", [("cpu", "")] * 2),
        ("cuda:1*2, cpu", [("cuda", "1"), ("cuda", "1"), ("cpu", "")]),
    ],
)
def test_slots_are_places_for_runs(text: str, devices: list[tuple[str, str]]) -> None:
    slots = parse_slots(text, {})
    assert [(s.device, s.environment["CUDA_VISIBLE_DEVICES"]) for s in slots] == devices
    assert all(int(slot.environment["OMP_NUM_THREADS"]) >= 1 for slot in slots)


def test_a_run_on_the_cpu_has_one_thread_unless_told_otherwise() -> None:
    threads = [slot.environment["OMP_NUM_THREADS"] for slot in parse_slots("cpu:4*2,cpu", {})]
    assert threads == ["4", "4", "1"]


def test_slots_respect_what_the_user_has_set() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "4,GPU-abc", "OMP_NUM_THREADS": "3"}
    (slot,) = parse_slots("cuda:1", environment)
    assert slot.environment == {"CUDA_VISIBLE_DEVICES": "GPU-abc", "OMP_NUM_THREADS": "3"}
    assert default_slots(environment) == "cuda:0,cuda:1"
    assert default_slots({"CUDA_VISIBLE_DEVICES": ""}).startswith("cpu*")
    with pytest.raises(UserError, match="no cuda:2: CUDA_VISIBLE_DEVICES leaves 2 GPUs"):
        parse_slots("cuda:2", environment)


@pytest.mark.parametrize(
    "text", ["", "gpu", "cpu*0", "cpu*-1", "cuda", "cuda:x", "cpu,,cpu", "cpu*", "cpu:0"]
)
def test_a_wrong_slot_is_explained(text: str) -> None:
    with pytest.raises(UserError, match="is not a slot; write cpu"):
        parse_slots(text, {})


def test_a_machine_without_gpus_has_a_slot_on_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert default_slots({}) == f"cpu*{num_cores()}"


def test_runs_on_gpus_share_the_cores() -> None:
    (slot, *_) = slots = parse_slots("cuda:0*2,cuda:1*2", {})
    threads = max(1, num_cores() // 4)
    assert [s.environment["OMP_NUM_THREADS"] for s in slots] == [str(threads)] * 4
    assert slot.device == "cuda"
