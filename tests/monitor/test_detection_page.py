"""The page about the detection benchmark, whose tables and numbers have tests of their own."""

import csv
from pathlib import Path

import pytest

from benchmarks.detection.kinds.suite import SUITE
from benchmarks.detection.watch import WAYS
from benchmarks.detection.watched import (
    TESTS,
    looks_in,
    rule_rows,
    sets_of,
    verdict,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results" / "detection"


def rows_of(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_run_of_the_suite_was_watched_in_every_way() -> None:
    rows = rows_of("states.csv")
    runs = {f"{name}-{seed}" for name in SUITE for seed in (0, 1)}
    assert {(row["run"], row["way"]) for row in rows} == {
        (run, way) for run in runs for way in WAYS
    }


def test_the_states_and_counts_are_those_of_the_looks() -> None:
    sets = sets_of(looks_in(FOLDER / "watched.parquet"))
    states = {(row["run"], row["watched"], row["way"]): row for row in rows_of("states.csv")}
    for looks in sets:
        found = verdict(looks)
        row = states[found.run, found.watched, "monitor"]
        assert (found.short_states, found.outcome) == (row["states"], row["outcome"])
        assert str(int(found.is_false_alarm)) == row["false alarm"]
    counts = {(row["kinds"], row["who"]): row for row in rows_of("rule.csv")}
    for row in rule_rows(sets):
        stored = counts[row["kinds"], row["who"]]
        for name in ("runs", "generalised", "missed", "lost", "not generalised", "false alarms"):
            assert stored[name] == str(row[name])


def test_the_last_version_of_the_rule_is_the_one_that_is_tested() -> None:
    last = rows_of("rules-so-far.csv")[-1]
    assert [f"unseen by rule {last['rule']}"] == list(TESTS)
    (row,) = (r for r in rows_of("rule.csv") if (r["kinds"], r["who"]) == (TESTS[0], "monitor"))
    for name in ("generalised", "missed", "lost", "loss missed", "not generalised", "false alarms"):
        assert row[name] == last[name]
    assert row["number of kinds"] == last["kinds"]


@pytest.mark.parametrize("name", ["states-120-looks.csv", "states-8-looks.csv"])
def test_other_cadences_make_no_error_as_the_page_says(name: str) -> None:
    rows = rows_of(name)
    assert len(rows) == 12
    assert {row["role"] for row in rows} == {"unseen by rule 3"}
    assert {(row["false alarm"], row["miss"]) for row in rows} == {("0", "0")}


def test_one_kind_was_announced_twice_as_the_page_of_the_monitor_says() -> None:
    for row in rows_of("states.csv"):
        if row["way"] == "monitor":
            announced = [
                at
                for at, (before, state) in enumerate(zip("F" + row["states"], row["states"]))
                if state == "G" and before != "G"
            ]
            assert len(announced) <= 1 or row["run"].startswith("ridges-turn"), row["run"]
