"""Two further questions: how accurate without labels, and which rows are wrong?"""

from typing import Any

import numpy as np

from benchmarks.detection.judging import FITTED
from benchmarks.detection.scores import auroc, bootstrap, isotonic
from benchmarks.detection.statistics import Table
from benchmarks.detection.tables import Row, bounds, fitted


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
                **bounds("mean error in points", drawn),
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
                **bounds("auroc", drawn),
                **bounds("ahead of max prob", ahead),
            }
        )
    return rows


_ROW_SCORES = {"row tolerance": 1.0, "max prob": 1.0, "entropy": -1.0, "margin": 1.0, "eu": -1.0}
