"""How the runs of the results pages ended, and when they fitted, peaked, generalised, collapsed.

By the package's own rules. Times are of every exported run that tracks the paper's prior
(`laplace`) or IVON's posterior, and of Laplace with a prior of its own and of plain noise.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import duckdb

from epigrok.config.splits import ID_TRAIN, ID_VAL
from epigrok.evaluation.fates import AccuracyBounds, end_of_run
from epigrok.evaluation.grokking_times import NEEDED_COLUMNS, grokking_times

POSTERIORS = ("laplace", "ivon", "laplace:evidence", "weight-noise:0.1")
GENERALISED_FROM = 0.9
"""As in the verdicts on the paper's claims: small grids end between 0.9 and 0.95."""
MOST_TRACKED_SAMPLES = 16
"""Rows with more samples are of a final evaluation."""
Times = tuple[str, str, str, str, int | None, int | None, int | None, int | None]
Ends = tuple[str, str, str, str, str]
_Row = dict[str, object]


@cache
def times_of_runs(folder: Path) -> list[Times]:
    """File, preset, run and posterior; steps of the fit, EU's peak, the transition, the collapse.

    All but the fit on unseen inputs.
    """
    return [row for file in _exported(folder) for row in _times_in(file, folder)]


@cache
def ends_of_runs(folder: Path) -> list[Ends]:
    """File, preset, run, held-out split, and how the run ended there."""
    return [row for file in _exported(folder) for row in _ends_in(file, folder)]


def _exported(folder: Path) -> list[Path]:
    """Files of tables `metrics` that name their runs and what they were."""
    return [
        file
        for file in sorted(folder.glob("*/*.parquet"))
        if {"run_id", "preset", "epistemic_final"} <= set(duckdb.read_parquet(str(file)).columns)
    ]


def _times_in(file: Path, folder: Path) -> Iterator[Times]:
    for (preset, run_id), rows in _runs_in(file, f"posterior in {('point', *POSTERIORS)}"):
        for times in grokking_times(rows, GENERALISED_FROM):
            if times.split == ID_VAL.name and times.posterior in POSTERIORS:
                steps = times.fitted_step, times.peak_step, times.generalised_step
                name = str(file.relative_to(folder))
                yield name, preset, run_id, times.posterior, *steps, times.collapsed_step


def _ends_in(file: Path, folder: Path) -> Iterator[Ends]:
    bounds = AccuracyBounds(generalised_from=GENERALISED_FROM)
    for (preset, run_id), rows in _runs_in(file, "posterior = 'point'"):
        for split in sorted({str(row["split"]) for row in rows} - {ID_TRAIN.name}):
            end = end_of_run(rows, split, bounds)
            if end is not None:
                yield str(file.relative_to(folder)), preset, run_id, split, end


def _runs_in(file: Path, condition: str) -> Iterator[tuple[tuple[str, str], list[_Row]]]:
    """Preset and id of each run, and its rows while it trained."""
    table = duckdb.sql(
        f"select preset, run_id, {', '.join(NEEDED_COLUMNS)} from '{file}' "
        f"where {condition} and num_samples <= {MOST_TRACKED_SAMPLES}"
    )
    runs: dict[tuple[str, str], list[_Row]] = {}
    for preset, run_id, *values in table.fetchall():
        runs.setdefault((preset, run_id), []).append(dict(zip(NEEDED_COLUMNS, values)))
    yield from sorted(runs.items(), key=lambda item: item[0])
