"""Tables of the detection benchmark, from records.

    python -m benchmarks.detection.analysis records --out docs/results/detection

Each table is one CSV file. Rows whose run is a blind spot (a shortcut that the watched set lacks)
are in every score; where a second line leaves them out, it says so.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.detection import records as stored
from benchmarks.detection.judging import GENERAL, NOT_GENERAL, verdicts
from benchmarks.detection.scores import (
    auroc,
    best_threshold,
    bootstrap,
    interval,
    isotonic,
    spearman,
)
from benchmarks.detection.statistics import AT_DEEP_LOOKS, NEEDS, STATISTICS, Table, table_of_looks
from epigrok.monitor.states import StateRule

FITTED = 0.95
Row = dict[str, Any]


def select(table: Table, mask: np.ndarray) -> Table:
    return {name: values[mask] for name, values in table.items()}


def fitted(table: Table) -> Table:
    """Looks at which the training set is fitted."""
    return select(table, table["train accuracy"] >= FITTED)


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
        **_bounds("auroc", drawn),
        **_bounds("ratio ahead by", behind),
        "auroc, none left out": auroc(value, is_general),
        "rank correlation": order(everything),
        **_bounds("rank correlation", drawn_order),
        **_bounds("ratio ahead by, rank correlation", behind_order),
        "missed looks, kind left out": missed,
        "false looks, kind left out": false,
    }


def _bounds(name: str, drawn: np.ndarray) -> Row:
    low, high = interval(drawn)
    return {f"{name}, low": low, f"{name}, high": high}


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


def verdict_rows(table: Table, gate: str) -> list[Row]:
    """What the frozen rule said of every run and watched set."""
    rows = []
    for verdict in verdicts(table, StateRule(), gate):
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
                "unreadable looks": verdict.num_unreadable,
                "states": short,
            }
        )
    return rows


def rule_summary(table: Table) -> list[Row]:
    """False alarms, misses and lag of the frozen rule, for each sign of fit and role."""
    rows = []
    for role in ("development", "held out"):
        part = select(table, table["role"] == role)
        if not len(part["run"]):
            continue
        for gate in ("train accuracy", "train loss", "none"):
            found = verdict_rows(part, gate)
            seen = [row for row in found if row["made to"] != "blind spot"]
            lags = [row["lag in steps"] for row in found if row["lag in steps"] != ""]
            looks = [row["lag in looks"] for row in found if row["lag in looks"] != ""]
            count = _counter(seen)
            rows.append(
                {
                    "role": role,
                    "sign of fit": gate,
                    "generalised": count("outcome", "generalised"),
                    "missed": sum(r["miss"] for r in seen if r["outcome"] == "generalised"),
                    "lost": count("outcome", "lost"),
                    "loss missed": sum(r["miss"] for r in seen if r["outcome"] == "lost"),
                    "not generalised": count("outcome", "not"),
                    "false alarms": sum(r["false alarm"] for r in seen),
                    "blind spots": len(found) - len(seen),
                    "false alarms, blind spots": sum(r["false alarm"] for r in found)
                    - sum(r["false alarm"] for r in seen),
                    "in between": count("outcome", "in between"),
                    "median lag in steps": float(np.median(lags)) if lags else "",
                    "worst lag in steps": max(lags, default=""),
                    "median lag in looks": float(np.median(looks)) if looks else "",
                    "worst lag in looks": max(looks, default=""),
                }
            )
    return rows


def _counter(rows: list[Row]) -> Callable[[str, str], int]:
    return lambda key, value: sum(row[key] == value for row in rows)


def accuracy_rows(table: Table) -> list[Row]:
    """Accuracy estimated without held-out labels: error in points, each kind left out in turn."""
    table = fitted(table)
    truth = table["accuracy"]
    chance = 1.0 / table["num classes"]
    estimates = {
        "average confidence": table["confidence"],
        "atc": table["atc"],
        "gde": table["gde"],
    }
    for name in ("ratio", "entropy", "confidence", "gde"):
        mapped = np.empty(len(truth))
        for kind in np.unique(table["kind"]):
            here, others = table["kind"] == kind, table["kind"] != kind
            ok = others & np.isfinite(table[name])
            fitted_map = isotonic(table[name][ok], table["generality"][ok])
            level = fitted_map(np.nan_to_num(table[name][here], nan=-1e9))
            mapped[here] = chance[here] + (1.0 - chance[here]) * level
        estimates[f"{name}, mapped"] = mapped
    rows = []
    for name, estimate in estimates.items():
        error = 100.0 * np.abs(estimate - truth)
        error = error[np.isfinite(error)]
        by_run = [np.nanmean(100.0 * np.abs(estimate - truth)[table["run"] == run])
                  for run in np.unique(table["run"])]  # fmt: skip
        drawn = bootstrap(
            table["recipe"],
            lambda i, e=estimate: float(100.0 * np.nanmean(np.abs(e - truth)[i])),
            200,
        )
        rows.append(
            {
                "estimate": name,
                "mean error in points": float(error.mean()),
                **_bounds("mean error in points", drawn),
                "median": float(np.median(error)),
                "90 %": float(np.quantile(error, 0.9)),
                "worst run's mean": float(np.nanmax(by_run)),
            }
        )
    return rows


def row_rows(records: dict[str, dict[str, Any]]) -> list[Row]:
    """Wrong answers among watched rows: AUROC of row-by-row scores, the mean over looks."""
    found: dict[str, list[float]] = {}
    groups: list[str] = []
    for record in records.values():
        num_sets = len(record["meta"]["sets"])
        seen_right = record["rows:answers"][:, 0] == record["rows:labels"][:, 0]
        for look in range(len(record["scalars"])):
            if seen_right[look].mean() < FITTED:
                continue
            for number in range(1, num_sets):
                num_rows = min(record[f"rows:{n}"].shape[2] for n in _ROW_SCORES)
                answers = record["rows:answers"][look, number, :num_rows]
                right = answers == record["rows:labels"][look, number, :num_rows]
                if not 0.05 <= right.mean() <= 0.95:
                    continue
                groups.append(record["meta"]["name"])
                for name, sign in _ROW_SCORES.items():
                    score = sign * record[f"rows:{name}"][look, number, :num_rows].astype(float)
                    score = np.nan_to_num(score, nan=0.0, posinf=1e9, neginf=-1e9)
                    found.setdefault(name, []).append(auroc(score, right))
    rows = []
    reference = np.array(found["max prob"])
    for name, values in found.items():
        value = np.array(values)
        drawn = bootstrap(np.array(groups), lambda i, v=value: float(v[i].mean()), 300)
        ahead = bootstrap(
            np.array(groups), lambda i, v=value: float((v - reference)[i].mean()), 300
        )
        rows.append(
            {
                "score": name,
                "looks": len(value),
                "auroc": float(value.mean()),
                **_bounds("auroc", drawn),
                **_bounds("ahead of max prob", ahead),
            }
        )
    return rows


_ROW_SCORES = {"row tolerance": 1.0, "max prob": 1.0, "entropy": -1.0, "margin": 1.0, "eu": -1.0}


def write(path: Path, rows: list[Row]) -> None:
    """A table as CSV, numbers to four digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _short(value) for key, value in row.items()})


def _short(value: Any) -> Any:
    return f"{float(value):.4g}" if isinstance(value, float | np.floating) else value


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
    write(options.out / "looks.csv", look_rows(table))
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
    everything = fitted(table)
    rows = [score_row(everything, s) for s in ("ratio", *variants)]
    write(options.out / "robustness.csv", rows)
    write(options.out / "states.csv", verdict_rows(table, "train accuracy"))
    write(options.out / "rule.csv", rule_summary(table))
    write(options.out / "accuracy.csv", accuracy_rows(table))
    write(options.out / "rows.csv", row_rows(loaded))
    write(options.out / "cost.csv", cost_rows(table))


if __name__ == "__main__":
    main()
