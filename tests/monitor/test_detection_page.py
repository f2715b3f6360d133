"""The pages about the detection benchmark show the numbers of its tables."""

import csv
import sys
from itertools import pairwise
from math import exp, hypot
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.detection.suite import SUITE  # noqa: E402
from benchmarks.detection.watched import READ_BEFORE, is_fitted  # noqa: E402
from epigrok.monitor import StateRule  # noqa: E402

FOLDER = ROOT / "docs" / "results" / "detection"
PAGE = (FOLDER / "README.md").read_text()
MONITOR_PAGE = (ROOT / "docs" / "monitor.md").read_text()
ROWS = ("auroc", "auroc, low", "auroc, high")
COUNTS = ("generalised", "missed", "lost", "loss missed", "not generalised", "false alarms")


def rows_of(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def lines_of(page: str, *cells: str) -> list[list[str]]:
    """Rows of a page's tables whose first cells are these."""
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    shown = [[cell.strip(" *") for cell in line] for line in lines]
    return [line[len(cells) :] for line in shown if line[: len(cells)] == list(cells)]


def counts_in(row: dict[str, str]) -> list[str]:
    """ "1 of 4" for misses, missed losses and false alarms, then the lags."""
    counts = [f"{row[found]} of {row[of]}" for of, found in zip(COUNTS[::2], COUNTS[1::2])]
    lags = [f"{float(row[f'{which} lag in steps']):.2f}" for which in ("median", "worst")]
    return [*counts, " / ".join(lags)]


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("ratio", "0.985"),
        ("ratio, whole", "0.997"),
        ("ratio, whole, lower end", "0.998"),
        ("gde", "0.994"),
        ("16 labels", "1.000"),
    ],
)
def test_scores_on_the_page_are_those_of_the_table(name: str, digits: str) -> None:
    (found,) = (row for row in rows_of("statistics-earlier.csv") if row["statistic"] == name)
    assert f"{float(found['auroc']):.3f}" == digits
    assert digits in PAGE


def test_rivals_on_the_page_are_those_of_the_table() -> None:
    for row in rows_of("statistics-later.csv"):
        # The latest kinds have a table of their own, without the column of costs.
        every = lines_of(PAGE, row["statistic"], row["labels"], row["runs"])
        (line,) = (line for line in every if len(line) == 3)
        middle, low, high = (f"{float(row[name]):.3f}" for name in ROWS)
        assert line[1] == f"{middle} ({low} to {high})"
        ahead = [f"{float(row[f'ratio ahead by, {end}']):+.3f}" for end in ("low", "high")]
        assert line[2] == ("" if row["statistic"] == "ratio" else " to ".join(ahead))


def test_counts_on_the_page_are_those_of_the_earlier_kinds() -> None:
    for row in rows_of("rule.csv"):
        (line,) = lines_of(PAGE, row["role"], row["rule"], row["sign of fit"])
        assert line == [*counts_in(row), f"{float(row['network readings a set']):.1f}"]


@pytest.mark.parametrize("role", ["later", "latest", "sixth"])
def test_counts_on_both_pages_are_those_of_the_later_kinds_and_after(role: str) -> None:
    for row in rows_of(f"rule-{role}.csv"):
        (line,) = lines_of(PAGE, role, row["rule"])
        assert line == [*counts_in(row), f"{float(row['auroc over looks']):.3f}"]
        if role == "sixth" and not row["rule"].startswith("fifth"):
            who = row["rule"].replace("sixth", "the monitor")
            assert lines_of(MONITOR_PAGE, who) == [counts_in(row)]


@pytest.mark.parametrize("role", ["latest", "sixth"])
def test_statistics_on_the_page_are_those_of_its_kinds(role: str) -> None:
    for row in rows_of(f"statistics-{role}.csv"):
        lines = lines_of(PAGE, row["statistic"], row["labels"], row["runs"])
        middle, low, high = (f"{float(row[name]):.3f}" for name in ROWS)
        assert f"{middle} ({low} to {high})" in [line[0] for line in lines]
    assert f"On {row['looks']} fitted looks" in PAGE


@pytest.mark.parametrize(("role", "before"), [("latest", "fourth"), ("sixth", "fifth")])
def test_the_kinds_that_test_a_rule_ran_under_it_and_the_one_before_and_each_error_is_named(
    role: str, before: str
) -> None:
    recipes = {name for name, spec in SUITE.items() if spec.role == role}
    for end in ("", "-nothing-passed", f"-{before}-rule", f"-{before}-rule-nothing-passed"):
        rows = rows_of(f"states-{role}{end}.csv")
        assert {row["run"] for row in rows} == {f"{n}-{seed}" for n in recipes for seed in (0, 1)}
        for row in rows:
            if "1" in (row["false alarm"], row["miss"], row["false loss"]):
                assert f"`{row['run']}`" in PAGE


def test_looks_that_the_fifth_rule_holds_back_are_counted_on_the_page() -> None:
    rule, held_back = StateRule(), {True: [0, 0], False: [0, 0]}
    for row in rows_of("watched-latest.csv"):
        generality = float(row["generality"])
        if not is_fitted(row) or row["tolerance_ratio"] == "nan" or 0.5 < generality < 0.9:
            continue
        seen, seen_error, watched, error = (
            float(row[f"{name}{end}"])
            for name in ("seen predictability", "predictability")
            for end in ("", "_se")
        )
        is_sure = watched - seen >= rule.by_heart_deviations * hypot(seen_error, error)
        is_by_heart = is_sure and seen < rule.by_heart_share * watched
        counts = held_back[generality >= 0.9]
        counts[0], counts[1] = counts[0] + is_by_heart, counts[1] + 1
    (others, num_others), (general, num_general) = held_back[False], held_back[True]
    words = " ".join(PAGE.split())
    assert f"held back {others} of {num_others} fitted looks at sets that were not general" in words
    assert f"and {general} of {num_general} at sets that were" in words


def test_every_error_of_the_later_runs_is_named_on_the_page() -> None:
    for name in ("states-later.csv", "states-later-nothing-passed.csv"):
        rows = rows_of(name)
        names = {row["run"].rsplit("-", 1)[0] for row in rows}
        assert names == {name for name, spec in SUITE.items() if spec.role == "later"}
        assert {row["false loss"] for row in rows} == {"0"}
        for row in rows:
            if row["false alarm"] == "1" or row["miss"] == "1":
                assert f"`{row['run']}`" in PAGE
    late = [int(row["late looks"]) for row in rows_of("states-later.csv")]
    assert f"noticed {min(late)} to {max(late)} looks after" in PAGE


def test_losses_that_the_third_rule_missed_are_named_on_the_page() -> None:
    missed = [row for row in rows_of("states-later-third-rule.csv") if row["miss"] == "1"]
    losses = {row["run"].rsplit("-", 1)[0] for row in missed if row["outcome"] == "lost"}
    assert len(losses) == 5
    assert all(f"`{name}`" in PAGE for name in losses)


def test_counts_on_the_page_are_those_of_the_fresh_kinds() -> None:
    rows = rows_of("rule-fresh.csv")
    assert {row["role"] for row in rows} == {"unread", "development"}
    for row in rows:
        (line,) = lines_of(PAGE, row["role"], row["rule"])
        assert line == [*counts_in(row), f"{float(row['auroc over looks']):.3f}"]


def test_every_error_of_the_fresh_runs_is_named_on_the_page() -> None:
    rows = rows_of("states-fresh.csv")
    names = {row["run"].rsplit("-", 1)[0] for row in rows}
    assert names == {name for name, spec in SUITE.items() if spec.role == "fresh"}
    assert set(READ_BEFORE) < names
    for row in rows:
        if row["false alarm"] == "1" or row["miss"] == "1":
            assert f"`{row['run']}`" in PAGE


def test_the_near_misses_on_the_page_are_those_of_the_looks() -> None:
    """Sets that are not general, and surely above the lowest threshold on the whole network."""
    lowest: dict[str, float] = {}
    for row in rows_of("watched.csv"):
        if float(row["generality"]) <= 0.5 and row["truth"] != "blind spot":
            ratio, error = (float(row[f"network_ratio{end}"]) for end in ("", "_log_se"))
            lowest[row["run"]] = max(lowest.get(row["run"], 0.0), ratio * exp(-2.0 * error))
    near = {run for run, ratio in lowest.items() if ratio >= StateRule().threshold}
    assert near == {"contains-random-0", "contains-random-1", "connected-little-1"}
    assert f"{lowest['contains-random-0']:.2f} two standard errors below" in PAGE


@pytest.mark.parametrize("name", ["states-120-looks.csv", "states-8-looks.csv"])
def test_other_cadences_make_no_error_as_the_page_says(name: str) -> None:
    rows = rows_of(name)
    assert len(rows) == 12
    assert {(row["false alarm"], row["miss"]) for row in rows} == {("0", "0")}
    assert f"`{name}`" in PAGE


def test_errors_with_nothing_passed_are_those_the_page_names() -> None:
    rows = [row for row in rows_of("states-nothing-passed.csv") if row["role"] == "unread"]
    seeing = [row for row in rows if row["made to"] != "blind spot"]
    wrong = {row["run"] for row in seeing if row["false alarm"] == "1"}
    missed = {row["run"] for row in seeing if row["miss"] == "1"}
    assert (wrong, missed) == ({"spirals-random-0"}, {"cubic-squares-0", "spirals-lost-0"})
    ends = [row["outcome"] for row in seeing]
    assert [ends.count(end) for end in ("not", "generalised", "lost")] == [9, 10, 4]


def test_no_announcement_was_taken_back_in_the_latest_runs_as_the_page_says() -> None:
    taken_back = [
        row["run"]
        for row in rows_of("watched-latest.csv")
        if row["state"] == "lost" and "learnt by heart" in row["unreadable"]
    ]
    assert not taken_back
    assert "nothing was taken back" in " ".join(PAGE.split())


def test_no_set_was_announced_twice_as_the_page_of_the_monitor_says() -> None:
    for role in ("", "-later", "-latest", "-sixth"):
        states: dict[tuple[str, str], list[str]] = {}
        for row in rows_of(f"watched{role}.csv"):
            states.setdefault((row["run"], row["watched"]), [""]).append(row["state"])
        for told in states.values():
            news = [now for before, now in pairwise(told) if now != before]
            assert news.count("generalised") <= 1
    assert "no set was announced twice" in " ".join(MONITOR_PAGE.split())


def test_coin_flips_on_the_page_are_those_of_the_tables() -> None:
    told = {
        end: [row for row in rows_of(f"coin-flips{end}.csv") if row["announced at"]]
        for end in ("", "-fourth-rule", "-1024-rows")
    }
    assert {row["training rows"] for row in told[""]} == {"600", "2000"}
    assert (len(told[""]), len(told["-1024-rows"])) == (11, 0)
    assert [row["last state"] for row in told[""]].count("lost") == 1
    assert sum(int(row["training rows"]) <= 256 for row in told["-fourth-rule"]) == 20
    words = " ".join(PAGE.split())
    assert "**Where it reads 256 of 600 or 2,000 rows, it still announces 11 of 16**" in words
