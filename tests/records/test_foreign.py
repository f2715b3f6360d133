"""What others wrote into status.json and provenance.json is left out where it cannot be."""

import pytest

from epigrok.records.foreign import clean_provenance, clean_status, is_step


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", "[/red]"),
        ("step", -1),
        ("step", 2**70),
        ("step", True),
        ("updated", "yesterday"),
        ("updated", 1e300),
        ("updated", float("nan")),
        ("steps_per_second", "fast"),
        ("steps_per_second", float("inf")),
        ("reason", ["why"]),
        ("state", {}),
        ("accuracy_final", 0.5),
        ("accuracy_final", {"id_val": "high"}),
        ("epistemic_final", {"id_val": 10**400}),
    ],
)
def test_an_entry_of_another_kind_is_left_out(name: str, value: object) -> None:
    status = {"loss": 1.0, "step": 3, "state": "running", name: value}
    assert clean_status(status) == {k: v for k, v in status.items() if k != name}


def test_what_epigrok_writes_stays() -> None:
    status = {
        "state": "running",
        "step": 3,
        "num_steps": 20,
        "loss": None,
        "accuracy_final": {"id_val": 0.5},
        "epistemic_final": {},
        "steps_per_second": 0.0,
        "host": "h",
        "pid": 3,
        "updated": 1.8e9,
    }
    assert clean_status(status) == status
    process = {"started": "2026-01-02T03:04:05+00:00", "versions": {"torch": "2"}, "device": "cpu"}
    record = {"epigrok": "1", "commit": None, "processes": [process]}
    assert clean_provenance(record) == record


@pytest.mark.parametrize("values", [None, [], 3, {}, {"processes": 3}, {"processes": [3]}])
def test_a_provenance_without_processes_is_none(values: object) -> None:
    assert clean_provenance(values) == {}


def test_entries_of_a_process_of_another_kind_are_left_out() -> None:
    process = {"started": "once", "versions": ["torch"], "python": 3, "host": "h"}
    values = {"commit": 7, "processes": [process]}
    assert clean_provenance(values) == {"processes": [{"host": "h"}]}
    naive = {"started": "2026-01-02T03:04:05"}
    assert clean_provenance({"processes": [naive]}) == {"processes": [{}]}


def test_a_step_is_a_whole_number() -> None:
    assert [is_step(value) for value in (0, 5, -1, 1.0, True, "1", None)] == [True, True] + [
        False
    ] * 5
