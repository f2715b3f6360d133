"""Trains runs of the suite under the monitor itself, as its users do, and writes what it said.

    python -m benchmarks.detection.watch --role later --out docs/results/detection/watched.csv

Much cheaper than `run.py`: nothing but the monitor looks, and it reads the whole network only where
its rule asks for that. One line for each look and watched set, with the truth beside it. Lines are
appended run by run, and runs that are in the file already are left out. With `--ways`, monitors
with other rules, or to which nothing is passed, look at the same training; `watched-third-rule.csv`
has what one of them said.
"""

import argparse
import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# One thread, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from benchmarks.detection.accuracies import generality
from benchmarks.detection.data import Rows
from benchmarks.detection.judging import FIFTH_RULE, FOURTH_RULE, THIRD_RULE
from benchmarks.detection.rivals import COLUMNS as RIVALS
from benchmarks.detection.rivals import rival_numbers
from benchmarks.detection.suite import SUITE
from benchmarks.detection.training import Look, Spec, looks
from epigrok.monitor import SEEN, GrokMonitor, MonitorSettings, SetReading, StateRule

MEASURED = (
    "state", "unreadable", "tolerance_ratio", "tolerance_ratio_log_se", "network_ratio",
    "network_ratio_log_se", "steadiness", "kept", "predictability", "predictability_se",
    "settled_ahead", "settled_ahead_se",
)  # fmt: skip
COLUMNS = (
    "run", "kind", "truth", "watched", "step", "generality", "16 labels", "64 labels",
    "train accuracy", "chance", "seen confidence", "seen steadiness", "seen tolerance",
    "seen predictability", "seen predictability_se",
    "train seconds", "look seconds", *MEASURED,
)  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Way:
    """A monitor that looks."""

    rule: StateRule = field(default_factory=StateRule)
    passes_accuracy: bool = True


WAYS = {
    "": Way(),
    "nothing-passed": Way(passes_accuracy=False),
    "fifth-rule": Way(rule=FIFTH_RULE),
    "fifth-rule-nothing-passed": Way(rule=FIFTH_RULE, passes_accuracy=False),
    "fourth-rule": Way(rule=FOURTH_RULE),
    "fourth-rule-nothing-passed": Way(rule=FOURTH_RULE, passes_accuracy=False),
    "third-rule": Way(rule=THIRD_RULE),
    "third-rule-nothing-passed": Way(rule=THIRD_RULE, passes_accuracy=False),
}
"""By the end of the name of the file that they fill; the first is the monitor as it is."""


def watched_rows(
    name: str,
    seed: int,
    num_looks: int,
    length: float = 1.0,
    ways: tuple[str, ...] = ("",),
    has_rivals: bool = False,
) -> Iterator[tuple[str, Row]]:
    """Train one run and look at it in all these ways. `length` shortens training.

    Rows of the first way have the rivals too, if they are asked for.
    """
    spec, phase = SUITE[name], -1
    monitors: dict[str, GrokMonitor] = {}
    trained = _trained_inputs(spec)
    sets: dict[str, Rows] = {}
    for look in looks(spec, seed, num_looks, length=length):
        look.model.eval()
        x, y = look.data.train
        if look.phase != phase:
            before = monitors
            sets = {key: _apart(rows, trained) for key, rows in look.watched.items()}
            monitors = {way: _monitor(look, sets, WAYS[way].rule) for way in ways}
            for way, monitor in before.items():  # another training set, the same watched ones
                monitors[way].load_state_dict(monitor.state_dict())
            phase = look.phase
        accuracy = _accuracy(look.model, x[:2048], y[:2048])
        known = {watched: _known(look, rows) for watched, rows in sets.items()}
        compared: dict[str, Row] = {watched: {} for watched in sets}
        if has_rivals:
            compared = rival_numbers(look, {SEEN: look.data.train, **sets})
        for way, monitor in monitors.items():
            passed = accuracy if WAYS[way].passes_accuracy else None
            reading = monitor.update(look.step, train_accuracy=passed)
            for watched in sets:
                row = {
                    "run": f"{name}-{seed}",
                    "recipe": name,
                    "kind": spec.kind,
                    "truth": spec.truth,
                    "watched": watched,
                    "step": look.step,
                    **known[watched],
                    "train accuracy": accuracy,
                    "chance": reading[SEEN].chance,
                    "seen confidence": reading[SEEN].confidence,
                    "seen steadiness": reading[SEEN].steadiness,
                    "seen tolerance": reading[SEEN].tolerance,
                    "seen predictability": reading[watched].seen_predictability,
                    "seen predictability_se": reading[watched].seen_predictability_se,
                    "train seconds": look.train_seconds,
                    "look seconds": reading.seconds,
                    **_measured(reading[watched]),
                    "ratio": reading[watched].tolerance_ratio,
                    **(compared[watched] if way == ways[0] else {}),
                }
                yield way, row


def _known(look: Look, rows: Rows) -> Row:
    """What labels say."""
    return {
        "generality": generality(look.model, *(part[:1024] for part in rows)),
        "16 labels": _accuracy(look.model, *(part[:16] for part in rows)),
        "64 labels": _accuracy(look.model, *(part[:64] for part in rows)),
    }


def _trained_inputs(spec: Spec) -> set[tuple[float, ...]]:
    """Of all phases, so that the watched rows are the same throughout."""
    sets = (phase.data(index).train[0] for index, phase in enumerate(spec.phases))
    return {tuple(row) for x in sets for row in x.flatten(1).tolist()}


def _apart(rows: Rows, trained: set[tuple[float, ...]]) -> Rows:
    """Without inputs that are trained on, which a small world has twice and the monitor refuses."""
    is_new = torch.tensor([tuple(row) not in trained for row in rows[0].flatten(1).tolist()])
    return rows[0][is_new], rows[1][is_new]


def _monitor(look: Look, sets: Mapping[str, Rows], rule: StateRule) -> GrokMonitor:
    watched = {name: x for name, (x, _) in sets.items()}
    settings = MonitorSettings(answered="last" if look.data.last_only else "all", rule=rule)
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
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=[""])
    parser.add_argument("--rivals", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    paths = {way: _path(options.out, way) for way in options.ways}
    done = _done(dict.fromkeys(paths.values(), COLUMNS))
    if options.rivals is not None:
        done &= _done({options.rivals: RIVALS})
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
        has_rivals = options.rivals is not None
        found = list(
            watched_rows(name, seed, options.looks, ways=tuple(paths), has_rivals=has_rivals)
        )
        if has_rivals:
            _append(options.rivals, RIVALS, [row for way, row in found if way == options.ways[0]])
        for way, path in paths.items():
            rows = [row for of_way, row in found if of_way == way]
            _append(path, COLUMNS, rows)
            states = {row["watched"]: row["state"] for row in rows}
            print(f"{name}-{seed} {way}: {states}", flush=True)


def _path(out: Path, way: str) -> Path:
    return out.with_stem(f"{out.stem}-{way}") if way else out


def _append(path: Path, columns: tuple[str, ...], rows: list[Row]) -> None:
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writerows({key: _written(value) for key, value in row.items()} for row in rows)


def _done(paths: Mapping[Path, tuple[str, ...]]) -> set[str]:
    """Runs that are in all files already; begins files that are not there, with these columns."""
    found = []
    for path, columns in paths.items():
        if path.exists():
            with path.open(newline="") as file:
                found.append({row["run"] for row in csv.DictReader(file)})
        else:
            path.write_text(",".join(columns) + "\n")
            found.append(set())
    return set.intersection(*found)


if __name__ == "__main__":
    main()
