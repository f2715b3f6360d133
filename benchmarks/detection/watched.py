"""Tables of what the monitor said, from the files of `watch.py`.

    python -m benchmarks.detection.watched looks --out docs/results/detection

- `watched.parquet`: every look of the monitor as it is, with the truth and the rivals beside it.
- `states.csv`: what was said of each set in each way, and whether it was right.
- `rule.csv`: the errors counted, with people beside them who label a few rows and say "generalised"
  where nine in ten of these are right.
- `statistics.csv`: how well the ratio and its rivals separate fitted looks.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.detection.judging import GENERAL, Verdict
from benchmarks.detection.rivals import table_of
from benchmarks.detection.separation import score_rows
from benchmarks.detection.statistics import NEEDS, Table
from benchmarks.detection.tables import Row, fitted, select, write, write_parquet
from benchmarks.detection.watch import COLUMNS, WAYS

LABELLED = ("16 labels", "64 labels")
TESTS = ("unseen by rule 7",)
"""Roles of the kinds that test the rule in force; it was chosen on all others."""
ALL, CHOSEN_ON = "all", "chosen on"
_LEFT_OUT = ("16 labels", "64 labels", "answers", "way")
"""Columns of `watch.py` that the table of looks leaves out, or names once."""
Look = Mapping[str, Any]
Looks = list[Look]


def looks_in(*paths: Path) -> Looks:
    """All lines of these files, CSV or Parquet."""
    found: Looks = []
    for path in paths:
        result = duckdb.sql(f"from '{path}'")
        found += [dict(zip(result.columns, values)) for values in result.fetchall()]
    return found


def sets_of(looks: Iterable[Look]) -> list[Looks]:
    """The looks at each run and watched set in each way, in order."""
    found: dict[tuple[str, ...], Looks] = {}
    for look in looks:
        key = (look["run"], look["watched"], look.get("way", "monitor"))
        found.setdefault(key, []).append(look)
    return [sorted(of_set, key=lambda look: int(look["step"])) for of_set in found.values()]


def verdict(looks: Looks, labels: str | None = None) -> Verdict:
    """What was said of one set, by the monitor or by a person with labels."""
    first = looks[0]
    states = [look["state"] for look in looks] if labels is None else labelled(looks, labels)
    return Verdict(
        **{name: first[name] for name in ("run", "kind", "role", "truth", "watched")},
        way=labels or first.get("way", "monitor"),
        states=tuple(states),
        generality=np.array([look["generality"] for look in looks]),
        steps=np.array([look["step"] for look in looks]),
        num_asked=0 if labels else sum(bool(np.isfinite(x["network_ratio"])) for x in looks),
    )


def labelled(looks: Looks, name: str) -> list[str]:
    """What a person says who has so many labels: nine in ten right, or not, or no longer."""
    states: list[str] = []
    for look in looks:
        otherwise = "lost" if "generalised" in states else "memorising"
        states.append("generalised" if look[name] >= GENERAL else otherwise)
    return states


def state_row(found: Verdict) -> Row:
    """One line of `states.csv`."""
    return {
        "run": found.run,
        "watched": found.watched,
        "way": found.way,
        "kind": found.kind,
        "role": found.role,
        "made to": found.truth,
        "outcome": found.outcome,
        "last state": found.states[-1],
        "false alarm": int(found.is_false_alarm),
        "miss": int(found.is_miss),
        "false loss": int(found.is_false_loss),
        "lag in steps": found.lag[0] if found.lag else "",
        "lag in looks": found.lag[1] if found.lag else "",
        "generality at the end": float(found.generality[-1]),
        "late looks": found.num_late,
        "network readings": found.num_asked,
        "states": found.short_states,
    }


def count_row(kinds: str, who: str, found: list[Verdict]) -> Row:
    """False alarms, misses and lag; blind spots are counted apart."""
    seeing = [one for one in found if one.truth != "blind spot"]
    ends = {name: [one for one in seeing if one.outcome == name]
            for name in ("generalised", "lost", "not", "in between")}  # fmt: skip
    lags = [one.lag[0] for one in seeing if one.lag and not one.is_false_alarm]
    return {
        "kinds": kinds,
        "who": who,
        "runs": len({one.run for one in found}),
        "number of kinds": len({one.kind for one in found}),
        "generalised": len(ends["generalised"]),
        "missed": sum(one.is_miss for one in ends["generalised"]),
        "lost": len(ends["lost"]),
        "loss missed": sum(one.is_miss for one in ends["lost"]),
        "losses late, looks at most": max((one.num_late for one in ends["lost"]), default=""),
        "false losses": sum(one.is_false_loss for one in seeing),
        "not generalised": len(ends["not"]),
        "false alarms": sum(one.is_false_alarm for one in ends["not"]),
        "in between": len(ends["in between"]),
        "false alarms, other sets": sum(
            one.is_false_alarm for one in seeing if one.outcome != "not"
        ),
        "blind spots": len(found) - len(seeing),
        "false alarms, blind spots": sum(
            one.is_false_alarm for one in found if one.truth == "blind spot"
        ),
        "median lag in steps": float(np.median(lags)) if lags else "",
        "worst lag in steps": max(lags, default=""),
        "network readings a set": float(np.mean([one.num_asked for one in found])),
    }


def groups(roles: Iterable[str]) -> dict[str, set[str]]:
    """The kinds that are counted together: each role, what the rule was chosen on, and all."""
    every = sorted(set(roles))
    found = {role: {role} for role in every}
    return {**found, CHOSEN_ON: set(every) - set(TESTS), ALL: set(every)}


def rule_rows(sets: list[Looks]) -> list[Row]:
    """Errors of every way of looking, and of few labels, on each group of kinds."""
    said: dict[str, list[Verdict]] = {way: [] for way in (*WAYS, *LABELLED)}
    for looks in sets:
        found = verdict(looks)
        said[found.way].append(found)
        if found.way == "monitor":
            for name in LABELLED:
                said[name].append(verdict(looks, name))
    return [
        count_row(kinds, who, chosen)
        for kinds, roles in groups(one.role for one in said["monitor"]).items()
        for who, verdicts in said.items()
        if (chosen := [one for one in verdicts if one.role in roles])
    ]


def statistic_rows(table: Table) -> list[Row]:
    """How well each statistic separates fitted looks; blind spots are left out."""
    table = fitted(table)
    table = select(table, np.isfinite(table["ratio"]) & (table["truth"] != "blind spot"))
    names = tuple(name for name in NEEDS if name in table)
    return [
        {"kinds": kinds, **row}
        for kinds, roles in groups(table["role"]).items()
        if kinds in (*TESTS, ALL)
        for row in score_rows(select(table, np.isin(table["role"], list(roles))), names)
    ]


def look_rows(looks: Looks, table: Table) -> list[Row]:
    """Every look, with what was computed from a run's past or its twin."""
    kept = [name for name in COLUMNS if name not in _LEFT_OUT]
    added = [name for name in table if name not in (*COLUMNS, "ratio")]
    return [
        {**{name: look[name] for name in kept}, **{name: table[name][at] for name in added}}
        | {name: look[name] for name in LABELLED}
        for at, look in enumerate(looks)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("looks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    looks = looks_in(*sorted(options.looks.glob("*.csv")))
    sets = sets_of(looks)
    write(options.out / "states.csv", [state_row(verdict(of_set)) for of_set in sets])
    write(options.out / "rule.csv", rule_rows(sets))
    plain = [look for of_set in sets for look in of_set if look["way"] == "monitor"]
    table = table_of(plain)
    write_parquet(options.out / "watched.parquet", look_rows(plain, table))
    write(options.out / "statistics.csv", statistic_rows(table))


if __name__ == "__main__":
    main()
