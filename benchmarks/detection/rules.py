"""What the rules said of every run: one line for each set, and their counts.

    python -m benchmarks.detection.rules docs/results/detection

Judges the stored looks of the earlier kinds again; `analysis.py` does it with new records.
"""

import argparse
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.detection.judging import (
    THIRD_RULE,
    Signs,
    Verdict,
    first_rule_verdicts,
    verdicts,
)
from benchmarks.detection.statistics import Table
from benchmarks.detection.suite import SUITE
from benchmarks.detection.tables import Row, write

OTHER_WAYS: dict[str, Signs] = {
    "head alone": Signs(network=None),
    "all but the head confirms": Signs(network="ratio, all but head"),
    "head by quantile": Signs(head="ratio, clean marginals"),
    "64 rows": Signs(head="ratio, 64 rows", network="ratio, whole, 64 rows"),
    "1024 rows": Signs(head="ratio, 1024 rows", network="ratio, whole, 1024 rows"),
    "4 draws": Signs(head="ratio, 4 draws", network="ratio, whole, 4 draws"),
    "16 draws": Signs(head="ratio, 16 draws", network="ratio, whole, 16 draws"),
    "level 0.8": Signs(head="ratio, level 0.8", network="ratio, whole, level 0.8"),
    "level 0.95": Signs(head="ratio, level 0.95", network="ratio, whole, level 0.95"),
}
"""The same constants with other readings; none was used to choose them."""


def state_rows(table: Table) -> list[Row]:
    """Every set's states under the third rule, and how the first rule did."""
    rows = []
    for now, before in zip(verdicts(table, THIRD_RULE, Signs()), first_rule_verdicts(table)):
        lag = now.lag
        rows.append(
            {
                "run": now.run,
                "watched": now.watched,
                "kind": now.kind,
                "role": now.role,
                "made to": now.truth,
                "outcome": now.outcome,
                "last state": now.states[-1],
                "false alarm": int(now.is_false_alarm),
                "miss": int(now.is_miss),
                "lag in steps": lag[0] if lag else "",
                "lag in looks": lag[1] if lag else "",
                "unreadable looks": int((~now.is_readable).sum()),
                "late looks": now.num_late,
                "late looks, readable": now.num_late_readable,
                "network readings": now.num_asked,
                "states": short_states(now),
                "false alarm, first rule": int(before.is_false_alarm),
                "miss, first rule": int(before.is_miss),
                "states, first rule": short_states(before),
            }
        )
    return rows


def rule_rows(part: Table, role: str) -> list[Row]:
    """False alarms, misses and lag on the runs of a role."""
    rule = THIRD_RULE
    told = verdicts(part, rule, Signs())
    rows = [
        _summary(role, "first", "train accuracy", first_rule_verdicts(part)),
        _summary(role, "third", "train accuracy", told),
    ]
    for fit in ("train loss", "none"):
        found = verdicts(part, rule, Signs(fit=fit))
        rows.append({**_summary(role, "third", fit, found), **_departures(found, told)})
    for name, signs in OTHER_WAYS.items():
        found = verdicts(part, rule, signs)
        rows.append(_summary(role, f"third, {name}", "train accuracy", found))
    return rows


def _summary(role: str, rule: str, fit: str, found: list[Verdict]) -> Row:
    seen = [verdict for verdict in found if verdict.truth != "blind spot"]
    ends = {name: [v for v in seen if v.outcome == name] for name in ("generalised", "lost", "not")}
    alarms = sum(verdict.is_false_alarm for verdict in seen)
    lags = [verdict.lag for verdict in seen if verdict.lag]
    return {
        "role": role,
        "rule": rule,
        "sign of fit": fit,
        "generalised": len(ends["generalised"]),
        "missed": sum(verdict.is_miss for verdict in ends["generalised"]),
        "lost": len(ends["lost"]),
        "loss missed": sum(verdict.is_miss for verdict in ends["lost"]),
        "not generalised": len(ends["not"]),
        "false alarms": alarms,
        "in between": len(seen) - sum(map(len, ends.values())),
        "blind spots": len(found) - len(seen),
        "false alarms, blind spots": sum(v.is_false_alarm for v in found) - alarms,
        "looks late at most": max(verdict.num_late for verdict in seen),
        "of them readable": max(verdict.num_late_readable for verdict in seen),
        "median lag in steps": float(np.median([steps for steps, _ in lags])) if lags else "",
        "worst lag in steps": max((steps for steps, _ in lags), default=""),
        "median lag in looks": float(np.median([looks for _, looks in lags])) if lags else "",
        "worst lag in looks": max((looks for _, looks in lags), default=""),
        "network readings a set": float(np.mean([verdict.num_asked for verdict in found])),
        "missed, unreadable to the end": "",
        "looks with another state": "",
    }


def _departures(found: list[Verdict], told: list[Verdict]) -> Row:
    """Where a monitor that gates itself says something else, and does not say "unreadable"."""
    other, total = 0, 0
    for ours, theirs in zip(found, told):
        differs = np.array([a != b for a, b in zip(ours.states, theirs.states)])
        other += int((differs & ours.is_readable).sum())
        total += len(differs)
    silent = [v for v in found if v.is_miss and not v.is_readable[-1] and v.truth != "blind spot"]
    return {
        "missed, unreadable to the end": len(silent),
        "looks with another state": other / total,
    }


def short_states(verdict: Verdict) -> str:
    """One letter for each look."""
    return "".join("i" if s == "generalising" else s[0].upper() for s in verdict.states)


def stored_looks(path: Path) -> Table:
    """The table of looks as `judging.py` takes it."""
    columns = duckdb.sql(f"FROM '{path}'").fetchnumpy()
    table: Table = {name: np.ma.filled(values, np.nan) if np.ma.isMaskedArray(values) else values
                    for name, values in columns.items()}  # fmt: skip
    specs = [SUITE[run.rsplit("-", 1)[0]] for run in table["run"]]
    return {**table, "role": np.array([spec.role for spec in specs]),
            "truth": np.array([spec.truth for spec in specs])}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    table = stored_looks(folder / "looks.parquet")
    write(folder / "rule.csv", rule_rows(table, "earlier"))
    write(folder / "states.csv", state_rows(table))


if __name__ == "__main__":
    main()
