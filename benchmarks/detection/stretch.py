"""By what factor may a posterior over the head be stretched? Beside multiplicative noise.

    python -m benchmarks.detection.stretch records --out readings/stretch.csv

Last-layer Laplace is fitted to the stored features of the seen rows, with the network's own answers
as labels, at two prior precisions. τ is then the factor by which its standard deviation may grow
before the agreement falls to 0.9. The deviation that IVON learns is read on the whole network while
the run is trained (`whole_network.py`).
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.detection import records as stored
from benchmarks.detection.coverage import stored_inputs
from benchmarks.detection.judging import GENERAL, NOT_GENERAL
from benchmarks.detection.scores import auroc, bootstrap, spearman
from benchmarks.detection.statistics import Table, table_of_looks
from benchmarks.detection.tables import Row, bounds, fitted, select, write
from epigrok.monitor import ToleranceSettings, tolerance, tolerance_ratio
from epigrok.monitor.tolerance import AnswersAtScale
from epigrok.posteriors import LastLayerLaplace, head_curvature
from epigrok.random_streams import normal, stream_key

SETTINGS = replace(ToleranceSettings(), lowest=1e-5, highest=1e6)
"""A posterior's width has no natural unit, so the search is wider."""
PRIORS: dict[str, Any] = {"laplace, prior 1": 1.0, "laplace, evidence": "evidence"}


def laplace_answers(posterior: LastLayerLaplace, features: Tensor) -> AnswersAtScale:
    """Answers under noise of the posterior's covariance, stretched."""
    key = stream_key(SETTINGS.seed, "detection:stretch")
    shape = tuple(posterior.weight_CD.shape)
    logits = features.double() @ posterior.weight_CD.T
    noise = torch.stack(
        [
            features.double()
            @ posterior.scaled_by_covariance_root(normal(key, shape, draw).double()).T
            for draw in range(SETTINGS.num_draws)
        ]
    )
    return lambda scale: (logits + scale * noise).argmax(dim=-1)


def laplace_ratio(record: dict[str, Any], index: int, number: int, prior: Any) -> float:
    """τ(watched)/τ(seen) in units of the posterior's deviation; nan where unreadable."""
    seen, watched = (stored_inputs(record, index, part) for part in (0, number))
    curvature = head_curvature(seen.head, [(seen.features_ND, seen.logits().argmax(dim=1))])
    posterior = LastLayerLaplace.from_curvature(curvature, prior)
    of_watched, of_seen = (
        tolerance(
            laplace_answers(posterior, seen.head.extended(part.features_ND)),
            len(seen.head.weight_CD),
            SETTINGS,
        )
        for part in (watched, seen)
    )
    return tolerance_ratio(of_watched, of_seen).value


def with_stretch(records: dict[str, dict[str, Any]]) -> Table:
    """The table of looks, with the ratios of both posteriors where features are stored."""
    table = table_of_looks(records)
    for name in PRIORS:
        table[name] = np.full(len(table["run"]), np.nan)
    for run, record in records.items():
        for index in record["deep_index"]:
            step = record["scalars"][int(index), 0]
            for number, watched in enumerate(record["meta"]["sets"][1:], start=1):
                at = (table["run"] == run) & (table["watched"] == watched) & (table["step"] == step)
                for name, prior in PRIORS.items():
                    table[name][at] = laplace_ratio(record, int(index), number, prior)
    return table


def score(table: Table, name: str, rival: str) -> Row:
    """AUROC and rank correlation of a stretch and of multiplicative noise, on the same looks."""
    part = select(table, np.isfinite(table[name]) & np.isfinite(table[rival]))
    is_general = part["generality"] >= GENERAL
    clear = is_general | (part["generality"] <= NOT_GENERAL)

    def ahead(index: np.ndarray) -> float:
        kept = index[clear[index]]
        values = (auroc(part[n][kept], is_general[kept]) for n in (name, rival))
        return float(np.subtract(*values))

    drawn = bootstrap(part["recipe"], ahead, 300)
    return {
        "stretch": name,
        "multiplicative noise": rival,
        "runs": len(np.unique(part["run"])),
        "looks": len(part["run"]),
        "general": int(is_general.sum()),
        "not general": int((clear & ~is_general).sum()),
        "auroc": auroc(part[name][clear], is_general[clear]),
        "auroc, multiplicative": auroc(part[rival][clear], is_general[clear]),
        **bounds("ahead by", drawn),
        "rank correlation": spearman(part[name], part["generality"]),
        "rank correlation, multiplicative": spearman(part[rival], part["generality"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    table = fitted(with_stretch(stored.load(*options.records)))
    rows = [score(table, name, "ratio") for name in PRIORS]
    if np.isfinite(table["ratio, learnt deviation"]).any():
        rows.append(score(table, "ratio, learnt deviation", "ratio, whole"))
    write(options.out, rows)


if __name__ == "__main__":
    main()
