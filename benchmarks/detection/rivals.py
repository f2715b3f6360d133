"""Cheap rivals of the ratio at the looks of `watch.py`, and how well all of them separate.

    python -m benchmarks.detection.rivals docs/results/detection

Reads `rivals-later.csv`, which `watch.py --rivals` fills, and writes `statistics-later.csv`; the
same for the latest kinds, where every look has the predictability of its answers, too, and for
those that test the sixth rule, where it has how many answers stood early.
"""

import argparse
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.detection import whole_network
from benchmarks.detection.analysis import score_rows
from benchmarks.detection.data import Rows
from benchmarks.detection.looks import RowsOf, head_rows, set_numbers
from benchmarks.detection.statistics import NEEDS, Table, over_peak
from benchmarks.detection.tables import fitted, select, write
from benchmarks.detection.training import Look
from epigrok.monitor import StateRule

NUM_ANSWERS = 256
"""Rows whose answers are kept, for the agreement of two runs."""
MEASURED = (
    "eu", "entropy", "confidence", "atc", "nuclear norm", "margin ratio", "weight norm",
    "spectral entropy",
)  # fmt: skip
COLUMNS = (
    "run", "recipe", "kind", "truth", "watched", "step", "generality", "train accuracy", "chance",
    "ratio", "16 labels", "64 labels", *MEASURED, "answers",
)  # fmt: skip


def rival_numbers(look: Look, sets: Mapping[str, Rows]) -> dict[str, dict[str, Any]]:
    """Of each watched set, everything turned so that higher means "has generalised"."""
    found: dict[str, dict[str, Any]] = {}
    last_only = look.data.last_only
    parts = {name: _numbers(look, RowsOf(*rows, last_only, "cpu")) for name, rows in sets.items()}
    seen, seen_rows = parts["seen"]
    error = float((seen_rows["answers"] != seen_rows["labels"]).mean())
    least = np.quantile(seen_rows["max prob"], error)
    norm = sum(float(p.detach().double().square().sum()) for p in look.model.parameters()) ** 0.5
    for name, (numbers, rows) in parts.items():
        if name != "seen":
            found[name] = {
                "eu": -numbers["eu"] / np.log(look.data.num_classes),
                "entropy": -numbers["entropy"],
                "confidence": numbers["confidence"],
                "atc": float((rows["max prob"] >= least).mean()),
                "nuclear norm": numbers["nuclear norm"],
                "margin ratio": numbers["margin 10 %"] / max(seen["margin 10 %"], 1e-12),
                "weight norm": -norm,
                "spectral entropy": -numbers["spectral entropy"],
                "answers": " ".join(map(str, rows["answers"][:NUM_ANSWERS])),
            }
    return found


def _numbers(look: Look, rows: RowsOf) -> tuple[dict[str, float], dict[str, Any]]:
    numbers, of_rows = set_numbers(head_rows(look.model, rows), rows.y)
    inputs, pick = rows.part(rows.num_close)
    epistemic = whole_network.epistemic_rows(look.model, inputs, pick, 0.1)
    return {**numbers, "eu": float(epistemic.mean())}, of_rows


def table_of(path: Path) -> Table:
    """All looks, with what needs a run's past or its twin."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    texts = ("run", "recipe", "kind", "truth", "watched", "answers")
    table = {
        name: np.array([row[name] if name in texts else float(row[name]) for row in rows])
        for name in COLUMNS
    }
    peak, gde = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    norm = table["weight norm"].copy()
    answers = {
        (row["run"], row["watched"], row["step"]): np.array(row["answers"].split()) for row in rows
    }
    for run, watched in set(zip(table["run"], table["watched"])):
        here = np.flatnonzero((table["run"] == run) & (table["watched"] == watched))
        peak[here] = -over_peak(-table["eu"][here])
        norm[here] /= -norm[here[0]]
        recipe, seed = run.rsplit("-", 1)
        for at in here:
            key = (watched, rows[at]["step"])
            twin = answers.get((f"{recipe}-{1 - int(seed)}", *key))
            gde[at] = np.nan if twin is None else (twin == answers[run, *key]).mean()
    return {**table, "weight norm": norm, "eu over its peak": peak, "gde": gde}


def with_predictability(path: Path, table: Table) -> Table:
    """How much better seen answers are predicted; the ratio, zero where they are by heart."""
    names = ("seen predictability", "predictability")
    seen, seen_error, watched, error = _watched_columns(path, table, names)
    rule = StateRule()
    is_sure = watched - seen >= rule.by_heart_deviations * np.hypot(seen_error, error)
    is_by_heart = is_sure & (seen < rule.by_heart_share * watched)
    return {
        **table,
        "predictability gap": seen - watched,
        "ratio and predictability": np.where(is_by_heart, 0.0, table["ratio"]),
    }


def with_past_answers(path: Path, table: Table) -> Table:
    """The ratio, zero also where watched answers stood before the seen ones were learnt."""
    ahead, error = _watched_columns(path, table, ("settled_ahead",))
    rule = StateRule()
    stood = ahead >= np.maximum(rule.settled_ahead_from, rule.by_heart_deviations * error)
    ratio = np.where(stood, 0.0, table["ratio and predictability"])
    return {**table, "ratio, predictability and past answers": ratio}


def _watched_columns(path: Path, table: Table, names: tuple[str, ...]) -> Iterator[np.ndarray]:
    """Columns of the file of `watch.py`, each with its standard error, for the table's looks."""
    with path.open(newline="") as file:
        looks = {(row["run"], row["watched"], float(row["step"])): row
                 for row in csv.DictReader(file)}  # fmt: skip
    keys = zip(table["run"], table["watched"], table["step"])
    rows = [looks[run, watched, step] for run, watched, step in keys]
    for name in names:
        for end in ("", "_se"):
            yield np.array([float(row[f"{name}{end}"]) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for role in ("later", "latest", "sixth"):
        if not (folder / f"rivals-{role}.csv").exists():
            continue
        table = table_of(folder / f"rivals-{role}.csv")
        if role != "later":
            table = with_predictability(folder / f"watched-{role}.csv", table)
        if role == "sixth":
            table = with_past_answers(folder / f"watched-{role}.csv", table)
        table = fitted(table)
        names = tuple(name for name in NEEDS if name in table)
        rows = score_rows(select(table, np.isfinite(table["ratio"])), names)
        write(folder / f"statistics-{role}.csv", rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
