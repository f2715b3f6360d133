"""Tables of the detection benchmark, from records.

    python -m benchmarks.detection.analysis records --out docs/results/detection

Each table is one CSV file. Rows whose run is a blind spot (a shortcut that the watched set lacks)
are in every score; where a second line leaves them out, it says so.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.detection import records as stored
from benchmarks.detection.estimates import accuracy_rows, row_rows
from benchmarks.detection.judging import GENERAL, NOT_GENERAL
from benchmarks.detection.records import NETWORK
from benchmarks.detection.rules import rule_rows, state_rows
from benchmarks.detection.scores import (
    auroc,
    best_threshold,
    bootstrap,
    spearman,
)
from benchmarks.detection.statistics import AT_DEEP_LOOKS, NEEDS, STATISTICS, Table, table_of_looks
from benchmarks.detection.tables import Row, bounds, fitted, select, write, write_parquet
from benchmarks.detection.variants import SETTINGS

ROLES = {"earlier": ("development", "held out"), "fresh": ("fresh",)}
"""The kinds of the earlier rules, and the fresh ones."""
VARIANTS = tuple(
    f"ratio, {name}"
    for name in (*SETTINGS, "clean marginals", *NETWORK)
    if name not in ("default", "whole", "learnt deviation")
)
"""Ratios measured in other ways."""


def score_rows(table: Table, names: tuple[str, ...]) -> list[Row]:
    """A line for each statistic that was measured."""
    known = (name for name in names if name in table)
    masks = {n: table["is deep"] if n in AT_DEEP_LOOKS else _is_measured(table, n) for n in known}
    return [score_row(select(table, mask), name) for name, mask in masks.items() if mask.any()]


def score_row(table: Table, name: str, num_draws: int = 300) -> Row:
    """How well one statistic separates and orders looks, with intervals over recipes."""
    value = np.nan_to_num(table[name], nan=-np.inf)
    reference = np.nan_to_num(table["ratio"], nan=-np.inf)
    generality = table["generality"]
    is_general, is_not = generality >= GENERAL, generality <= NOT_GENERAL
    clear = is_general | is_not

    def separation(index: np.ndarray, score: np.ndarray = value) -> float:
        index = index[clear[index]]
        return auroc(score[index], is_general[index])

    def order(index: np.ndarray, score: np.ndarray = value) -> float:
        return spearman(score[index], generality[index])

    everything = np.arange(len(value))
    groups = table["recipe"]
    drawn = bootstrap(groups, separation, num_draws)
    drawn_order = bootstrap(groups, order, num_draws)
    behind = bootstrap(groups, lambda i: separation(i, reference) - separation(i), num_draws)
    behind_order = bootstrap(groups, lambda i: order(i, reference) - order(i), num_draws)
    labels, runs = NEEDS.get(name, ("none", "1"))
    missed, false = left_out_errors(table, name)
    return {
        "statistic": name,
        "labels": labels,
        "runs": runs,
        "looks": len(value),
        "auroc": separation(everything),
        **bounds("auroc", drawn),
        **bounds("ratio ahead by", behind),
        "auroc, none left out": auroc(value, is_general),
        "rank correlation": order(everything),
        **bounds("rank correlation", drawn_order),
        **bounds("ratio ahead by, rank correlation", behind_order),
        "missed looks, kind left out": missed,
        "false looks, kind left out": false,
    }


def _is_measured(table: Table, name: str) -> np.ndarray:
    """Looks of the runs in which a statistic was measured at all; slow networks lack a few."""
    known = np.unique(table["run"][np.isfinite(table[name])])
    return np.isin(table["run"], known)


def left_out_errors(table: Table, name: str) -> tuple[float, float]:
    """Error rates over looks, each kind judged by a threshold chosen on the other kinds."""
    value = np.nan_to_num(table[name], nan=-1e9)
    generality = table["generality"]
    is_general = generality >= GENERAL
    clear = is_general | (generality <= NOT_GENERAL)
    missed = false = 0
    for kind in np.unique(table["kind"]):
        here = (table["kind"] == kind) & clear
        others = (table["kind"] != kind) & clear
        said = value[here] >= best_threshold(value[others], is_general[others])
        missed += int((is_general[here] & ~said).sum())
        false += int((~is_general[here] & said).sum())
    num_general = int((is_general & clear).sum())
    return missed / num_general, false / int((clear & ~is_general).sum())


def look_rows(table: Table) -> list[Row]:
    """The table of looks itself, for readers who want to score it their own way."""
    leave_out = {"role", "truth", "recipe"}
    names = [name for name in table if name not in leave_out and not name.startswith("seconds")]
    return [{name: table[name][i] for name in names} for i in range(len(table["run"]))]


def cost_rows(table: Table) -> list[Row]:
    """Seconds that one look takes, and the share of training that 50 looks would."""
    rows = []
    ends = [np.flatnonzero(table["run"] == run)[-1] for run in np.unique(table["run"])]
    training = table["train seconds"][ends]
    for name in ("ratio", "eu", "whole"):
        seconds = np.array(
            [np.nanmedian(table[f"seconds {name}"][table["run"] == table["run"][i]]) for i in ends]
        )
        rows.append(
            {
                "statistic": name,
                "seconds per look, median run": float(np.nanmedian(seconds)),
                "slowest run": float(np.nanmax(seconds)),
                "50 looks, share of training, median": float(np.nanmedian(50 * seconds / training)),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    loaded = stored.load(*options.records)
    table = table_of_looks(loaded)
    options.out.mkdir(parents=True, exist_ok=True)
    write_parquet(options.out / "looks.parquet", look_rows(table))
    judged: list[Row] = []
    for name, roles in ROLES.items():
        whole = select(table, np.isin(table["role"], roles))
        if not len(whole["run"]):
            continue
        judged += rule_rows(whole, name)
        part = fitted(whole)
        seeing = select(part, part["truth"] != "blind spot")
        write(options.out / f"statistics-{name}.csv", score_rows(part, STATISTICS))
        if len(seeing["run"]) < len(part["run"]):
            path = options.out / f"statistics-{name}-without-blind-spots.csv"
            write(path, score_rows(seeing, STATISTICS))
        write(options.out / f"robustness-{name}.csv", score_rows(seeing, ("ratio", *VARIANTS)))
    write(options.out / "states.csv", state_rows(table))
    write(options.out / "rule.csv", judged)
    write(options.out / "accuracy.csv", accuracy_rows(table))
    write(options.out / "rows.csv", row_rows(loaded))
    write(options.out / "cost.csv", cost_rows(table))


if __name__ == "__main__":
    main()
