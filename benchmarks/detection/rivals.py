"""Cheap rivals of the ratio at the looks of `watch.py`, and their columns in its table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.detection import whole_network
from benchmarks.detection.kinds.data_sets import Rows
from benchmarks.detection.looks import RowsOf, head_rows, set_numbers
from benchmarks.detection.statistics import Table, over_peak
from benchmarks.detection.training import Look
from epigrok.monitor import StateRule

NUM_ANSWERS = 256
"""Rows whose answers are kept, for the agreement of two runs."""
RIVALS = (
    "eu", "entropy", "confidence", "atc", "nuclear norm", "margin ratio", "weight norm",
    "spectral entropy",
)  # fmt: skip
_TEXTS = ("run", "recipe", "kind", "role", "truth", "watched", "answers")
_PLAIN = ("step", "generality", "train accuracy", "chance", "16 labels", "64 labels", *RIVALS)


def rival_numbers(look: Look, sets: Mapping[str, Rows]) -> dict[str, dict[str, Any]]:
    """Of each watched set, everything turned so that higher means "has generalised"."""
    found: dict[str, dict[str, Any]] = {}
    last_only = look.data.last_only
    parts = {name: _numbers(look, RowsOf(*rows, last_only)) for name, rows in sets.items()}
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


def table_of(looks: Sequence[Mapping[str, Any]]) -> Table:
    """All looks, with what needs a run's past or its twin."""
    table = {
        **{name: np.array([row[name] for row in looks]) for name in _TEXTS},
        **{name: _numbers_in(looks, name) for name in _PLAIN},
        "ratio": _numbers_in(looks, "tolerance_ratio"),
    }
    peak, gde = np.full(len(looks), np.nan), np.full(len(looks), np.nan)
    norm = table["weight norm"].copy()
    answers = {
        (row["run"], row["watched"], row["step"]): np.array(row["answers"].split()) for row in looks
    }
    for run, watched in set(zip(table["run"], table["watched"])):
        here = np.flatnonzero((table["run"] == run) & (table["watched"] == watched))
        peak[here] = -over_peak(-table["eu"][here])
        norm[here] /= -norm[here[0]]
        recipe, seed = run.rsplit("-", 1)
        for at in here:
            key = (watched, looks[at]["step"])
            twin = answers.get((f"{recipe}-{1 - int(seed)}", *key))
            gde[at] = np.nan if twin is None else (twin == answers[run, *key]).mean()
    by_heart, stood_before = _is_by_heart(looks), _stood_before(looks)
    return {
        **table,
        "weight norm": norm,
        "eu over its peak": peak,
        "gde": gde,
        "predictability gap": _numbers_in(looks, "seen_predictability")
        - _numbers_in(looks, "predictability"),
        "ratio and predictability": np.where(by_heart, 0.0, table["ratio"]),
        "ratio, predictability and past answers": np.where(
            by_heart | stood_before, 0.0, table["ratio"]
        ),
    }


def _is_by_heart(looks: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Where the rule says that rows were learnt by heart, from their predictability."""
    seen, watched = (_numbers_in(looks, f"{which}predictability") for which in ("seen_", ""))
    error = np.hypot(*(_numbers_in(looks, f"{w}predictability_se") for w in ("seen_", "")))
    rule = StateRule()
    is_sure = watched - seen >= rule.by_heart_deviations * error
    return np.asarray(is_sure & (seen < rule.by_heart_share * watched))


def _stood_before(looks: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Where the rule says that watched answers stood before the seen ones were learnt."""
    ahead, error = (_numbers_in(looks, f"settled_ahead{end}") for end in ("", "_se"))
    rule = StateRule()
    least = np.maximum(rule.settled_ahead_from, rule.settled_ahead_deviations * error)
    return np.asarray(ahead >= least)


def _numbers_in(looks: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in looks])
