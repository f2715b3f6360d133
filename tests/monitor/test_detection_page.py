"""The page of the detection benchmark shows the numbers of its tables."""

import csv
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results" / "detection"
PAGE = (FOLDER / "README.md").read_text()


def rows_of(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def lines_of(*cells: str) -> list[list[str]]:
    """Rows of the page's tables whose first cells are these."""
    lines = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    shown = [[cell.strip(" *") for cell in line] for line in lines]
    return [line for line in shown if line[: len(cells)] == list(cells)]


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


def test_counts_on_the_page_are_those_of_the_rule_table() -> None:
    columns = ("generalised", "missed", "lost", "loss missed", "not generalised", "false alarms")
    num_compared = 0
    for row in rows_of("rule.csv"):
        for line in lines_of(row["role"], row["rule"], row["sign of fit"]):
            wanted = [f"{row[b]} of {row[a]}" for a, b in zip(columns[::2], columns[1::2])]
            lags = [f"{float(row[f'{which} lag in steps']):.2f}" for which in ("median", "worst")]
            assert line[3:6] == wanted
            assert line[6] == " / ".join(lags)
            num_compared += 1
    assert num_compared >= 6


def test_fresh_runs_on_the_page_are_those_of_their_table() -> None:
    columns = ("made to", "false alarm", "miss", "false alarm, first rule", "lag in steps")
    rows = rows_of("states-fresh-so-far.csv")
    assert len(rows) == 8
    for row in rows:
        assert lines_of(row["run"]) == [[row["run"], *(row[name] for name in columns)]]
