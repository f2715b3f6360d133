"""Tables of the detection benchmark, from records.

    python -m benchmarks.detection.analysis records --out docs/results/detection

Each table is one CSV file. Rows whose run is a blind spot (a shortcut that the watched set lacks)
are in every score; where a second line leaves them out, it says so.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.detection import records as stored
from benchmarks.detection.estimates import accuracy_rows, row_rows
from benchmarks.detection.judging import GENERAL, NOT_GENERAL, verdicts
from benchmarks.detection.scores import (
    auroc,
    best_threshold,
    bootstrap,
    spearman,
)
from benchmarks.detection.statistics import AT_DEEP_LOOKS, NEEDS, STATISTICS, Table, table_of_looks
from benchmarks.detection.tables import Row, bounds, fitted, select, write, write_parquet
from epigrok.monitor.states import StateRule


def score_row(table: Table, name: str, num_draws: int = 300) -> Row:
    """How well one statistic separates and orders looks, with intervals over recipes."""
    if name in AT_DEEP_LOOKS:
        table = select(table, table["is deep"])
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


def verdict_rows(
    table: Table, gate: str, column: str = "ratio", rule: StateRule | None = None
) -> list[Row]:
    """What the frozen rule said of every run and watched set."""
    rows = []
    for verdict in verdicts(table, rule or StateRule(), gate, column):
        lag = verdict.lag
        short = "".join("i" if s == "generalising" else s[0].upper() for s in verdict.states)
        rows.append(
            {
                "run": verdict.run,
                "watched": verdict.watched,
                "kind": verdict.kind,
                "role": verdict.role,
                "made to": verdict.truth,
                "outcome": verdict.outcome,
                "last state": verdict.states[-1],
                "false alarm": int(verdict.is_false_alarm),
                "miss": int(verdict.is_miss),
                "lag in steps": lag[0] if lag else "",
                "lag in looks": lag[1] if lag else "",
                "unreadable looks": int((~verdict.is_readable).sum()),
                "late looks": verdict.num_late,
                "late looks, readable": verdict.num_late_readable,
                "states": short,
            }
        )
    return rows


def rule_summary(table: Table) -> list[Row]:
    """False alarms, misses and lag of the frozen rule, for each role and sign of fit.

    The lines for other ratios came after the fact: the rule was not chosen for them. Those of the
    whole network are known at fewer looks, so a single reading decides.
    """
    rows = []
    one = replace(StateRule(), num_confirmations=1)
    for role in ("development", "held out"):
        part = select(table, table["role"] == role)
        if not len(part["run"]):
            continue
        for gate in ("train accuracy", "train loss", "none"):
            rows.append(_summary(role, gate, "ratio", verdict_rows(part, gate)))
        column = "ratio, level 0.95"
        found = verdict_rows(part, "train accuracy", column)
        rows.append(_summary(role, "train accuracy", column, found))
        deep = select(part, part["is deep"])
        for column in ("ratio", "ratio, whole", "ratio, first layer"):
            found = verdict_rows(deep, "train accuracy", column, one)
            rows.append(_summary(role, "train accuracy", f"{column}; fewer looks", found))
    return rows


def _summary(role: str, gate: str, column: str, found: list[Row]) -> Row:
    seen = [row for row in found if row["made to"] != "blind spot"]
    lags = [row["lag in steps"] for row in found if row["lag in steps"] != ""]
    looks = [row["lag in looks"] for row in found if row["lag in looks"] != ""]
    count = _counter(seen)
    alarms = sum(row["false alarm"] for row in seen)
    return {
        "role": role,
        "ratio": column,
        "sign of fit": gate,
        "generalised": count("outcome", "generalised"),
        "missed": sum(row["miss"] for row in seen if row["outcome"] == "generalised"),
        "lost": count("outcome", "lost"),
        "loss missed": sum(row["miss"] for row in seen if row["outcome"] == "lost"),
        "not generalised": count("outcome", "not"),
        "false alarms": alarms,
        "loss noticed late": sum(row["late looks"] > 0 for row in seen),
        "looks late at most": max(row["late looks"] for row in seen),
        "of them readable": max(row["late looks, readable"] for row in seen),
        "blind spots": len(found) - len(seen),
        "false alarms, blind spots": sum(row["false alarm"] for row in found) - alarms,
        "in between": count("outcome", "in between"),
        "median lag in steps": float(np.median(lags)) if lags else "",
        "worst lag in steps": max(lags, default=""),
        "median lag in looks": float(np.median(looks)) if looks else "",
        "worst lag in looks": max(looks, default=""),
    }


def _counter(rows: list[Row]) -> Callable[[str, str], int]:
    return lambda key, value: sum(row[key] == value for row in rows)


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
    for name in ("ratio", "eu", "whole", "llc", "commutator"):
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
    parser.add_argument("records", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    loaded = stored.load(options.records)
    table = table_of_looks(loaded)
    options.out.mkdir(parents=True, exist_ok=True)
    write_parquet(options.out / "looks.parquet", look_rows(table))
    for role in ("development", "held out"):
        part = fitted(select(table, table["role"] == role))
        if not len(part["run"]):
            continue
        name = role.replace(" ", "-")
        write(options.out / f"statistics-{name}.csv", [score_row(part, s) for s in STATISTICS])
        seeing = select(part, part["truth"] != "blind spot")
        if len(seeing["run"]) < len(part["run"]):
            rows = [score_row(seeing, s) for s in STATISTICS]
            write(options.out / f"statistics-{name}-without-blind-spots.csv", rows)
    variants = [n for n in table if n.startswith("ratio, ")]
    seeing = fitted(select(table, table["truth"] != "blind spot"))
    for role in ("development", "held out"):
        part = select(seeing, seeing["role"] == role)
        if len(part["run"]):
            rows = [score_row(part, s) for s in ("ratio", *variants)]
            write(options.out / f"robustness-{role.replace(' ', '-')}.csv", rows)
    write(options.out / "states.csv", verdict_rows(table, "train accuracy"))
    write(options.out / "rule.csv", rule_summary(table))
    write(options.out / "accuracy.csv", accuracy_rows(table))
    write(options.out / "rows.csv", row_rows(loaded))
    write(options.out / "cost.csv", cost_rows(table))


if __name__ == "__main__":
    main()
