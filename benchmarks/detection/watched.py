"""Tables of what the monitor said, from the file of `watch.py`.

    python -m benchmarks.detection.watched docs/results/detection

Of files like `watched-120-looks.csv`, runs looked at in other ways, the states only.
`states-fresh.csv` has a line for each set, `rule-fresh.csv` the counts of errors, with labelled
rows as rivals: these say "generalised" where nine in ten of them are right. `rule-later.csv` has
them for the later kinds, under two rules, where all files of `watch.py --ways` are there;
`rule-latest.csv` for the latest, `rule-sixth.csv` for those that test the sixth rule.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from benchmarks.detection.judging import GENERAL, NOT_GENERAL, Verdict
from benchmarks.detection.rules import short_states
from benchmarks.detection.scores import auroc
from benchmarks.detection.tables import FITTED, Row, write

READ_BEFORE = (
    "connected-little", "cubic-random", "decoys", "decoys-little", "dots-mlp-little",
    "interval-focal", "rare-random", "spirals",
)  # fmt: skip
"""Fresh recipes that the third rule was chosen on."""
LABELLED = ("16 labels", "64 labels")
RULES = {
    "later": {
        "fourth": "",
        "third": "-third-rule",
        "fourth, nothing passed": "-nothing-passed",
        "third, nothing passed": "-third-rule-nothing-passed",
    },
    "latest": {
        "fifth": "",
        "fourth": "-fourth-rule",
        "fifth, nothing passed": "-nothing-passed",
        "fourth, nothing passed": "-fourth-rule-nothing-passed",
    },
    "sixth": {
        "sixth": "",
        "fifth": "-fifth-rule",
        "sixth, nothing passed": "-nothing-passed",
        "fifth, nothing passed": "-fifth-rule-nothing-passed",
    },
}
"""Rules that watched the kinds of a role, and how the names of their files end."""
Looks = list[dict[str, str]]


def sets_of(path: Path) -> list[Looks]:
    """The looks at each run and watched set, in order."""
    found: dict[tuple[str, str], Looks] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["run"], row["watched"]), []).append(row)
    return list(found.values())


def verdict(looks: Looks, states: list[str] | None = None) -> Verdict:
    """What was said of one set, beside what was true."""
    first = looks[0]
    return Verdict(
        run=first["run"],
        kind=first["kind"],
        role="development" if first["run"].rsplit("-", 1)[0] in READ_BEFORE else "unread",
        truth=first["truth"],
        watched=first["watched"],
        states=tuple(states or [look["state"] for look in looks]),
        generality=np.array([float(look["generality"]) for look in looks]),
        steps=np.array([int(look["step"]) for look in looks]),
        is_readable=np.array([not look["unreadable"] for look in looks]),
        num_asked=sum(look["network_ratio"] != "nan" for look in looks),
    )


def is_fitted(look: dict[str, str]) -> bool:
    """Whether the training set is, above chance."""
    chance = float(look["chance"])
    return float(look["train accuracy"]) - chance >= FITTED * (1.0 - chance) > 0.0


def labelled_states(looks: Looks, name: str) -> list[str]:
    """What a person says who has so many labels: nine in ten right, or not, or no longer."""
    states: list[str] = []
    for look in looks:
        otherwise = "lost" if "generalised" in states else "memorising"
        states.append("generalised" if float(look[name]) >= GENERAL else otherwise)
    return states


def state_row(found: Verdict) -> Row:
    """One line of `states-fresh.csv`."""
    return {
        "run": found.run,
        "watched": found.watched,
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
        "states": short_states(found),
    }


def count_row(role: str, rule: str, found: list[Verdict]) -> Row:
    """False alarms, misses and lag; blind spots are counted apart."""
    seeing = [one for one in found if one.truth != "blind spot"]
    ends = {name: [one for one in seeing if one.outcome == name]
            for name in ("generalised", "lost", "not", "in between")}  # fmt: skip
    lags = [one.lag[0] for one in seeing if one.lag and not one.is_false_alarm]
    return {
        "role": role,
        "rule": rule,
        "runs": len({one.run for one in found}),
        "kinds": len({one.kind for one in found}),
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


def look_auroc(sets: list[Looks], name: str) -> float:
    """Of one column at fitted looks, general against not; blind spots are left out."""
    looks = [
        look
        for of_set in sets
        for look in of_set
        if is_fitted(look) and look["truth"] != "blind spot" and look["tolerance_ratio"] != "nan"
    ]
    generality = np.array([float(look["generality"]) for look in looks])
    is_clear = (generality >= GENERAL) | (generality <= NOT_GENERAL)
    values = np.array([float(look[name]) for look in looks])
    return auroc(values[is_clear], generality[is_clear] >= GENERAL)


def rule_rows(sets: list[Looks], role: str, rule: str) -> list[Row]:
    """Counts of what a rule said of these sets, and of what few labels would have said."""
    said = {rule: [verdict(looks) for looks in sets]} | {
        name: [verdict(looks, labelled_states(looks, name)) for looks in sets] for name in LABELLED
    }
    return [
        {
            **count_row(role, who, found),
            "auroc over looks": look_auroc(sets, who if who in LABELLED else "tolerance_ratio"),
        }
        for who, found in said.items()
    ]


def rows_of_role(folder: Path, role: str) -> list[Row]:
    """The kinds of a role under each rule, then as few labels say."""
    rows: list[Row] = []
    for rule, end in RULES[role].items():
        found, *labelled = rule_rows(sets_of(folder / f"watched-{role}{end}.csv"), role, rule)
        rows = [found, *labelled] if not rows else [*rows[:-2], found, *rows[-2:]]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sets = sets_of(folder / "watched.csv")
    write(folder / "states-fresh.csv", [state_row(verdict(looks)) for looks in sets])
    for path in folder.glob("watched-*.csv"):
        states = [state_row(verdict(looks)) for looks in sets_of(path)]
        write(folder / path.name.replace("watched", "states"), states)
    rows = []
    for role in ("unread", "development"):
        chosen = [looks for looks in sets if verdict(looks).role == role]
        rows += rule_rows(chosen, role, "third")
    write(folder / "rule-fresh.csv", rows)
    for role, ends in RULES.items():
        if all((folder / f"watched-{role}{end}.csv").exists() for end in ends.values()):
            write(folder / f"rule-{role}.csv", rows_of_role(folder, role))


if __name__ == "__main__":
    main()
