"""How well statistics tell looks at sets that are general from others, with intervals over runs."""

import numpy as np

from benchmarks.detection.judging import GENERAL, NOT_GENERAL
from benchmarks.detection.scores import auroc, best_threshold, bootstrap, spearman
from benchmarks.detection.statistics import AT_DEEP_LOOKS, NEEDS, Needs, Table
from benchmarks.detection.tables import Row, bounds, select


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
    needs = NEEDS.get(name, Needs())
    is_end = _is_end(table)
    missed, false = left_out_errors(table, name)
    return {
        "statistic": name,
        **needs._asdict(),
        "looks": len(value),
        "auroc": separation(everything),
        **bounds("auroc", drawn),
        **bounds("ratio ahead by", behind),
        "auroc, none left out": auroc(value, is_general),
        "auroc, ends of runs": auroc(value[is_end & clear], is_general[is_end & clear]),
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


def _is_end(table: Table) -> np.ndarray:
    """The last of these looks at each run and watched set."""
    last = {
        (run, watched): at for at, (run, watched) in enumerate(zip(table["run"], table["watched"]))
    }
    found = np.zeros(len(table["run"]), dtype=bool)
    found[list(last.values())] = True
    return found
