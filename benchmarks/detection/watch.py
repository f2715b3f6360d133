"""Trains runs of the suite under the monitor itself, as its users do, and writes what it said.

    python -m benchmarks.detection.watch --role fresh --out docs/results/detection/watched.csv

Much cheaper than `run.py`: nothing but the monitor looks, and it reads the whole network only where
its rule asks for that. One line for each look and watched set, with the truth beside it. Lines are
appended run by run, and runs that are in the file already are left out.
"""

import argparse
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# One thread, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from benchmarks.detection.accuracies import generality
from benchmarks.detection.data import Rows
from benchmarks.detection.suite import SUITE
from benchmarks.detection.training import Look, looks
from epigrok.monitor import SEEN, GrokMonitor, MonitorSettings, SetReading

MEASURED = (
    "state", "unreadable", "tolerance_ratio", "tolerance_ratio_log_se", "network_ratio",
    "network_ratio_log_se", "steadiness",
)  # fmt: skip
COLUMNS = (
    "run", "kind", "truth", "watched", "step", "generality", "16 labels", "64 labels",
    "train accuracy", "chance", "seen tolerance", "train seconds", "look seconds", *MEASURED,
)  # fmt: skip
Row = dict[str, Any]


def watched_rows(
    name: str, seed: int, num_looks: int, length: float = 1.0, passes_accuracy: bool = True
) -> Iterator[Row]:
    """Train one run and look at it. `length` shortens training."""
    spec, phase, monitor = SUITE[name], -1, None
    sets: dict[str, Rows] = {}
    for look in looks(spec, seed, num_looks, length=length):
        look.model.eval()
        x, y = look.data.train
        if monitor is None or look.phase != phase:
            before = monitor
            sets = {key: _apart(rows, x) for key, rows in look.watched.items()}
            monitor = _monitor(look, sets)
            if before is not None:  # another training set, the same watched ones
                monitor.load_state_dict(before.state_dict())
            phase = look.phase
        accuracy = _accuracy(look.model, x[:2048], y[:2048])
        reading = monitor.update(look.step, train_accuracy=accuracy if passes_accuracy else None)
        for watched, rows in sets.items():
            held_out = tuple(part[:1024] for part in rows)
            yield {
                "run": f"{name}-{seed}",
                "kind": spec.kind,
                "truth": spec.truth,
                "watched": watched,
                "step": look.step,
                "generality": generality(look.model, *held_out),
                "16 labels": _accuracy(look.model, *(part[:16] for part in rows)),
                "64 labels": _accuracy(look.model, *(part[:64] for part in rows)),
                "train accuracy": accuracy,
                "chance": reading[SEEN].chance,
                "seen tolerance": reading[SEEN].tolerance,
                "train seconds": look.train_seconds,
                "look seconds": reading.seconds,
                **_measured(reading[watched]),
            }


def _apart(rows: Rows, x_train: torch.Tensor) -> Rows:
    """Without inputs that are trained on, which a small world has twice and the monitor refuses."""
    trained = set(map(tuple, x_train.flatten(1).tolist()))
    is_new = torch.tensor([tuple(row) not in trained for row in rows[0].flatten(1).tolist()])
    return rows[0][is_new], rows[1][is_new]


def _monitor(look: Look, sets: dict[str, Rows]) -> GrokMonitor:
    watched = {name: x for name, (x, _) in sets.items()}
    settings = MonitorSettings(answered="last" if look.data.last_only else "all")
    return GrokMonitor(look.model, look.data.train[0], watched, settings=settings)


def _measured(found: SetReading) -> Row:
    return {name: getattr(found, name) for name in MEASURED}


@torch.no_grad()
def _accuracy(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    return float((model(x).argmax(dim=-1) == y).double().mean())


def _written(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", nargs="*")
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--looks", type=int, default=28)
    parser.add_argument("--passes-nothing", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = set()
    if options.out.exists():
        with options.out.open(newline="") as file:
            done = {row["run"] for row in csv.DictReader(file)}
    else:
        options.out.write_text(",".join(COLUMNS) + "\n")
    wanted = [
        (name, seed)
        for name, spec in SUITE.items()
        for seed in options.seeds
        if (not options.role or spec.role in options.role)
        and (not options.names or name in options.names)
        and f"{name}-{seed}" not in done
    ]
    # Cheap runs first; second seeds last, so that what is cut short has most kinds.
    wanted.sort(key=lambda run: (run[1], SUITE[run[0]].cost))
    for name, seed in wanted:
        passes = not options.passes_nothing
        rows = list(watched_rows(name, seed, options.looks, passes_accuracy=passes))
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writerows({key: _written(value) for key, value in row.items()} for row in rows)
        states = {row["watched"]: row["state"] for row in rows}
        print(f"{name}-{seed}: {states}", flush=True)


if __name__ == "__main__":
    main()
