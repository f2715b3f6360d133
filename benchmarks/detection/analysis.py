"""Tables of the detection benchmark, from records.

    python -m benchmarks.detection.analysis records --out readings

Each table is one CSV file. Blind spots (such as a shortcut that the watched set lacks) are in
`statistics-ROLE.csv`, and left out of `…-without-blind-spots.csv` and of `robustness-ROLE.csv`.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.detection import records as stored
from benchmarks.detection.estimates import accuracy_rows, row_rows
from benchmarks.detection.records import NETWORK
from benchmarks.detection.separation import score_rows
from benchmarks.detection.statistics import STATISTICS, Table, table_of_looks
from benchmarks.detection.tables import Row, fitted, select, write, write_parquet
from benchmarks.detection.variants import SETTINGS

VARIANTS = tuple(
    f"ratio, {name}"
    for name in (*SETTINGS, "clean marginals", *NETWORK)
    if name not in ("default", "whole", "learnt deviation")
)
"""Ratios measured in other ways."""


def look_rows(table: Table) -> list[Row]:
    """The table of looks itself, for readers who want to score it their own way."""
    leave_out = {"role", "truth", "recipe"}
    names = [name for name in table if name not in leave_out and not name.startswith("seconds")]
    return [{name: table[name][i] for name in names} for i in range(len(table["run"]))]


def cost_rows(table: Table) -> list[Row]:
    """Seconds that one look takes, and the share of training that 50 looks would."""
    rows = []
    ends = [np.flatnonzero(table["run"] == run)[-1] for run in np.unique(table["run"])]
    training = table["train seconds"][ends]
    for name in ("ratio", "eu", "whole"):
        seconds = np.array(
            [np.nanmedian(table[f"seconds {name}"][table["run"] == table["run"][i]]) for i in ends]
        )
        rows.append(
            {
                "statistic": name,
                "seconds per look, median run": float(np.nanmedian(seconds)),
                "slowest run": float(np.nanmax(seconds)),
                "50 looks, share of training, median": float(np.nanmedian(50 * seconds / training)),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    loaded = stored.load(*options.records)
    table = table_of_looks(loaded)
    options.out.mkdir(parents=True, exist_ok=True)
    write_parquet(options.out / "looks.parquet", look_rows(table))
    for role in np.unique(table["role"]):
        name = role.replace(" ", "-")
        part = fitted(select(table, table["role"] == role))
        seeing = select(part, part["truth"] != "blind spot")
        write(options.out / f"statistics-{name}.csv", score_rows(part, STATISTICS))
        if len(seeing["run"]) < len(part["run"]):
            path = options.out / f"statistics-{name}-without-blind-spots.csv"
            write(path, score_rows(seeing, STATISTICS))
        write(options.out / f"robustness-{name}.csv", score_rows(seeing, ("ratio", *VARIANTS)))
    write(options.out / "accuracy.csv", accuracy_rows(table))
    write(options.out / "rows.csv", row_rows(loaded))
    write(options.out / "cost.csv", cost_rows(table))


if __name__ == "__main__":
    main()
