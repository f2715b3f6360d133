"""From records to one table: a row per run, watched set and look, a column per statistic.

Every statistic is turned so that higher means "has generalised". Nothing in a row uses later looks.
"""

from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.detection.records import DEEP, NETWORK, SCALARS
from epigrok.monitor import StateRule
from epigrok.monitor.past_answers import earlier_step
from epigrok.monitor.tolerance import chance_corrected_agreement

Table = dict[str, np.ndarray]
ERROR = "log standard error"


class Needs(NamedTuple):
    """What a look at a statistic takes, on one watched set."""

    labels: str = "none"
    runs: int = 1
    cost: str = "one pass"


NEEDS: dict[str, Needs] = {
    "ratio": Needs(),
    "ratio, whole": Needs(cost="72 passes"),
    "ratio, whole, lower end": Needs(cost="72 passes"),
    "eu over its peak": Needs(cost="16 passes, history"),
    "eu": Needs(cost="16 passes"),
    "eu at tau seen": Needs(),
    "entropy": Needs(),
    "confidence": Needs(),
    "atc": Needs(labels="training"),
    "nuclear norm": Needs(),
    "margin ratio": Needs(),
    "predictability gap": Needs(),
    "ratio and predictability": Needs(),
    "ratio, predictability and past answers": Needs(),
    "entropy ratio": Needs(),
    "weight norm": Needs(cost="no pass"),
    "spectral entropy": Needs(),
    "gde": Needs(runs=2, cost="a second run"),
    "learning coefficient": Needs(labels="training", cost="60 steps"),
    "learning coefficient (1e-4)": Needs(labels="training", cost="60 steps"),
    "commutator defect": Needs(labels="training", cost="36 steps"),
    "4 labels": Needs(labels="4 held out"),
    "16 labels": Needs(labels="16 held out"),
    "64 labels": Needs(labels="64 held out"),
    "256 labels": Needs(labels="256 held out"),
}
STATISTICS = tuple(NEEDS)
AT_DEEP_LOOKS = ("learning coefficient", "learning coefficient (1e-4)", "commutator defect")
"""Computed at every eighth look only, and scored there."""


def table_of_looks(records: dict[str, dict[str, Any]]) -> Table:
    """All looks of all runs, with the columns that all of them have."""
    rows: list[dict[str, Any]] = []
    for name, record in records.items():
        meta = record["meta"]
        twin = records.get(f"{meta['name']}-{1 - meta['seed']}")
        for number, watched in enumerate(meta["sets"][1:], start=1):
            rows += _rows_of(name, record, twin, number, watched)
    keys = [key for key in rows[0] if all(key in row for row in rows)]
    return {key: np.array([row[key] for row in rows]) for key in keys}


def _rows_of(
    name: str, record: dict[str, Any], twin: dict[str, Any] | None, number: int, watched: str
) -> list[dict[str, Any]]:
    meta, scalars = record["meta"], record["scalars"]
    numbers = {n: record["numbers"][:, :, i] for i, n in enumerate(meta["numbers"])}
    variants = {n: record["variants"][:, number - 1, i] for i, n in enumerate(meta["variants"])}
    scalar = {n: scalars[:, i] for i, n in enumerate(SCALARS)}
    deep = {n: _carried(record["deep"][:, i]) for i, n in enumerate(DEEP)}
    seen = {n: values[:, 0] for n, values in numbers.items()}
    shown = {n: values[:, number] for n, values in numbers.items()}
    chance = 1.0 / shown["num classes"]
    labelled = _labelled(record, number, name)
    network = _network(record, number)
    whole = network["whole"]
    columns: dict[str, Any] = {
        "run": name,
        "recipe": meta["name"],
        "kind": meta["kind"],
        "role": meta["role"],
        "truth": meta["truth"],
        "watched": watched,
        "step": scalar["step"].astype(int),
        "is deep": np.isfinite(record["deep"][:, 0]),
        "phase": scalar["phase"].astype(int),
        "accuracy": shown["accuracy"],
        "balanced accuracy": shown["balanced accuracy"],
        "generality": (shown["balanced accuracy"] - chance) / (1.0 - chance),
        "num classes": shown["num classes"],
        "train accuracy": seen["accuracy"],
        "train loss": scalar["train loss"],
        "seen confidence": seen["confidence"],
        "seen entropy": seen["entropy"],
        ERROR: variants["default"][:, 1],
        "tau watched": variants["default"][:, 2],
        "tau seen": variants["default"][:, 3],
        "train seconds": scalar["train seconds"],
        "seconds ratio": scalar["seconds ratio"],
        "seconds eu": scalar["seconds eu"],
        "seconds whole": scalar["seconds whole"],
        "chance": _chance(record),
        "steadiness": _steadiness(record, number),
        **{n: deep[n] for n in DEEP if n.startswith("seconds")},
        "ratio": variants["default"][:, 0],
        "eu over its peak": -over_peak(shown["eu 0.1"]),
        "eu": -shown["eu 0.1"] / np.log(shown["num classes"]),
        "eu at tau seen": -shown["eu at tau seen"] / np.log(shown["num classes"]),
        "entropy": -shown["entropy"],
        "confidence": shown["confidence"],
        "atc": _atc(record, number),
        "nuclear norm": shown["nuclear norm"],
        "margin ratio": shown["margin 10 %"] / np.maximum(seen["margin 10 %"], 1e-12),
        "entropy ratio": -shown["entropy"] / np.maximum(seen["entropy"], 1e-12),
        "weight norm": -scalar["weight norm"] / scalar["weight norm"][0],
        "spectral entropy": -shown["spectral entropy"],
        "gde": _twin_agreement(record, twin, number),
        "learning coefficient": -deep["llc 1e-05"],
        "learning coefficient (1e-4)": -deep["llc 0.0001"],
        "commutator defect": -deep["commutator"],
        **labelled,
        **{f"ratio, {n}": values[:, 0] for n, values in variants.items() if n != "default"},
        **{f"{ERROR}, {n}": values[:, 1] for n, values in variants.items() if n != "default"},
        **{f"ratio, {name}": values[:, 0] for name, values in network.items()},
        **{f"{ERROR}, {name}": values[:, 1] for name, values in network.items()},
        "ratio, whole, lower end": whole[:, 0] * np.exp(-StateRule().deviations * whole[:, 1]),
    }
    return [
        {key: value[look] if isinstance(value, np.ndarray) else value
         for key, value in columns.items()}
        for look in range(len(scalars))
    ]  # fmt: skip


def _carried(values: np.ndarray) -> np.ndarray:
    """Each value that was not computed is the last one that was."""
    index = np.where(np.isfinite(values), np.arange(len(values)), -1)
    last = np.maximum.accumulate(index)
    return np.where(last >= 0, values[np.maximum(last, 0)], np.nan)


def _network(record: dict[str, Any], number: int) -> dict[str, np.ndarray]:
    """Ratios under noise on the network, unknown where a run was not measured in that way."""
    kept = record["network"][:, number - 1]
    measured = record["meta"]["network"]
    unknown = np.full((len(kept), 4), np.nan)
    return {n: kept[:, measured.index(n)] if n in measured else unknown for n in NETWORK}


def _chance(record: dict[str, Any]) -> np.ndarray:
    """Accuracy of guessing with the shares of the answers to the seen rows."""
    answers = record["rows:answers"][:, 0]
    return np.array(
        [(np.bincount(row) / len(row) @ np.bincount(row)) / len(row) for row in answers]
    )


def _steadiness(record: dict[str, Any], number: int) -> np.ndarray:
    """Cohen's κ between the answers to the watched rows and those of an earlier look."""
    answers = torch.from_numpy(record["rows:answers"][:, number].astype(np.int64))
    num_classes, rule = int(answers.max()) + 1, StateRule()
    steps = [int(step) for step in record["scalars"][:, SCALARS.index("step")]]
    found = []
    for now, step in zip(answers, steps):
        earlier = earlier_step(steps, step, rule)
        before = None if earlier is None else answers[steps.index(earlier)]
        found.append(
            np.nan
            if before is None
            else float(chance_corrected_agreement(before, now[None], num_classes))
        )
    return np.array(found)


def over_peak(values: np.ndarray) -> np.ndarray:
    """Each value over the largest so far."""
    return values / np.maximum(np.maximum.accumulate(values), 1e-12)


def _atc(record: dict[str, Any], number: int) -> np.ndarray:
    """Average thresholded confidence, the training rows as the source.

    The threshold leaves as large a share of the source below it as the source has errors; the
    estimate is the share of the watched rows above it.
    """
    confidence = record["rows:max prob"]
    num_rows = confidence.shape[2]
    right = record["rows:answers"][:, 0, :num_rows] == record["rows:labels"][:, 0, :num_rows]
    found = []
    for look in range(len(confidence)):
        threshold = np.quantile(confidence[look, 0], 1.0 - right[look].mean())
        found.append((confidence[look, number] >= threshold).mean())
    return np.array(found)


def _twin_agreement(record: dict[str, Any], twin: dict[str, Any] | None, number: int) -> np.ndarray:
    """Share of watched rows on which two runs of one recipe agree (GDE)."""
    num_looks = len(record["scalars"])
    if twin is None or len(twin["scalars"]) != num_looks:
        return np.full(num_looks, np.nan)
    ours, theirs = (part["rows:answers"][:, number] for part in (record, twin))
    return (ours == theirs).mean(axis=1)


def _labelled(record: dict[str, Any], number: int, name: str) -> dict[str, np.ndarray]:
    """Accuracy on a few labelled rows, the same ones at every look."""
    right = record["rows:answers"][:, number] == record["rows:labels"][:, number]
    rng = np.random.default_rng(sum(map(ord, name)))
    order = rng.permutation(right.shape[1])
    return {f"{count} labels": right[:, order[:count]].mean(axis=1) for count in (4, 16, 64, 256)}
