"""Whether two checkouts compute the same numbers: for changes that must not move any.

`python benchmarks/same_numbers.py OLD NEW [DIRECTORY]` trains four presets for 300 steps, evaluated
every 100, with the source trees of both checkouts on one CPU thread. It compares the weights of
every checkpoint byte for byte, and looks for every row of the old tables among the new ones, with
equal values in all columns of the old row. The new checkout may have tables and columns that the
old one has not. Exit code 1 if anything differs. Runs that are in DIRECTORY already are compared
as they are.

To make a checkout: `git worktree add ../old COMMIT`. Tables of runs without a `run.json` call
`num_sequences` `num_rows` and keep three tables in one. Their calibration has empty bins, and bins
of the curve beside those of the final evaluation; both kinds are left out of the comparison.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

PRESETS = ("classic", "classic-ivon", "icl-tiny", "icl-tiny-ivon")
SETTINGS = ("--num-steps", "300", "--evaluation.every", "100", "--device", "cpu")
KEY = ("step", "split", "posterior", "context_length", "bin")
RENAMED = {"num_rows": "num_sequences"}
NOT_REPEATABLE = {"timings.jsonl"}
Row = dict[str, str]


def train(checkout: Path, preset: str, run: Path) -> None:
    if (run / "DONE").exists():
        return
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(checkout.resolve() / "src")
    command = [sys.executable, "-m", "epigrok", "train", preset, *SETTINGS, "--out", str(run)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def rows(run: Path) -> Iterator[Row]:
    """Every row of every table, its values as text, so that NaN equals NaN."""
    for file in sorted(run.glob("*.jsonl")):
        if file.name not in NOT_REPEATABLE:
            yield from map(_row, map(json.loads, file.read_text().splitlines()))
    for file in run.glob("positions-*.parquet"):
        table = duckdb.sql(f"from '{file}'")
        yield from (_row(dict(zip(table.columns, values))) for values in table.fetchall())


def _row(values: dict[str, Any]) -> Row:
    return {RENAMED.get(name, name): repr(value) for name, value in values.items()}


def rows_that_differ(old: Path, new: Path) -> tuple[int, list[Row]]:
    """The number of old rows, and those that are in no table of the new run."""
    found: dict[tuple[str | None, ...], list[Row]] = {}
    for row in rows(new):
        found.setdefault(tuple(map(row.get, KEY)), []).append(row)
    wanted = list(_without_old_bins(rows(old)))
    missing = []
    for row in wanted:
        others = found.get(tuple(map(row.get, KEY)), [])
        if not any(row.items() <= other.items() for other in others):
            missing.append(row)
    return len(wanted), missing


def _without_old_bins(old: Iterator[Row]) -> Iterator[Row]:
    """Rows less the bins of calibration that are empty or belong to the curve."""
    every = list(old)
    most: dict[tuple[str, str], int] = {}
    for row in every:
        if "bin" in row:
            of = row["split"], row["posterior"]
            most[of] = max(most.get(of, 0), int(row["num_samples"]))
    for row in every:
        is_bin = "bin" in row
        is_final = is_bin and int(row["num_samples"]) == most[row["split"], row["posterior"]]
        if not is_bin or (is_final and row["count"] != "0"):
            yield row


def weights_that_differ(old: Path, new: Path) -> tuple[int, list[str]]:
    """The number of files with weights, and those that are not the same in both runs."""
    names = [
        {str(file.relative_to(run)) for file in run.glob("checkpoints/*/*.safetensors")}
        for run in (old, new)
    ]
    differing = [
        name
        for name in names[0] & names[1]
        if (old / name).read_bytes() != (new / name).read_bytes()
    ]
    return len(names[0]), sorted({*differing, *(names[0] ^ names[1])})


def main(old: Path, new: Path, directory: Path) -> int:
    is_same = True
    for preset in PRESETS:
        runs = directory / f"old-{preset}", directory / f"new-{preset}"
        for checkout, run in zip((old, new), runs):
            train(checkout, preset, run)
        num_files, files = weights_that_differ(*runs)
        num_rows, missing = rows_that_differ(*runs)
        print(
            f"{preset:<14} {num_files - len(files)} of {num_files} files of weights and "
            f"{num_rows - len(missing)} of {num_rows} rows are the same"
        )
        for file in files:
            print(f"  differs: {file}")
        for row in missing[:3]:
            print(f"  not found: {row}")
        is_same = is_same and bool(num_files and num_rows) and not files and not missing
    return 0 if is_same else 1


if __name__ == "__main__":
    if len(sys.argv) > 3:
        sys.exit(main(*map(Path, sys.argv[1:4])))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), Path(folder)))
