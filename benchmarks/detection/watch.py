"""Trains runs of the suite under the monitor itself, as its users do, and writes what it said.

    python -m benchmarks.detection.watch --role "unseen by rule 7" --out looks/unseen-7.csv

One line for each look, watched set and way of looking, with the truth beside it. Much cheaper than
`run.py`: the whole network is read only where the rule asks for that. Lines are appended run by
run, and runs that are in the file already are left out. `watched.py` makes the tables.
"""

import argparse
import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

# One thread, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from benchmarks.detection.accuracies import generality
from benchmarks.detection.kinds.data_sets import Rows
from benchmarks.detection.kinds.suite import SUITE
from benchmarks.detection.rivals import RIVALS, rival_numbers
from benchmarks.detection.training import ROLES, Look, Spec, looks
from epigrok.monitor import SEEN, GrokMonitor, MonitorSettings, SetReading, StateRule

MEASURED = (
    "state", "unreadable", "tolerance_ratio", "tolerance_ratio_log_se", "network_ratio",
    "network_ratio_log_se", "steadiness", "kept", "predictability", "predictability_se",
    "seen_predictability", "seen_predictability_se", "settled_ahead", "settled_ahead_se",
)  # fmt: skip
COLUMNS = (
    "run", "recipe", "kind", "role", "truth", "watched", "way", "step", "generality", "16 labels",
    "64 labels", "train accuracy", "chance", "seen confidence", "seen steadiness",
    "seen tolerance", "train seconds", "look seconds", *MEASURED, *RIVALS, "answers",
)  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Way:
    """A monitor that looks."""

    rule: StateRule = field(default_factory=StateRule)
    passes_accuracy: bool = True
    confirms: bool = True


def _without(**constants: Any) -> Way:
    return Way(rule=StateRule(**constants))


_LOWEST = StateRule().threshold
WAYS = {
    "monitor": Way(),
    "nothing passed": Way(passes_accuracy=False),
    "without the whole network": Way(confirms=False),
    "without waiting": _without(held_threshold=_LOWEST, fresh_threshold=_LOWEST),
    "without steady answers": _without(steady_from=-1.0),
    "without predictability": _without(by_heart_deviations=inf),
    "without answers before the fit": _without(settled_ahead_from=inf),
    "without answers kept": _without(kept_from=-2.0),
}
"""The monitor as it is, with the training accuracy passed; then without that, and without one
clause of its rule each."""


def watched_rows(
    name: str,
    seed: int,
    num_looks: int,
    length: float = 1.0,
    ways: tuple[str, ...] = tuple(WAYS),
) -> Iterator[Row]:
    """Train one run and look at it in all these ways. `length` shortens training.

    Rows of the first way have the rivals, too.
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
            monitors = {way: _monitor(look, sets, WAYS[way]) for way in ways}
            for way, monitor in before.items():  # another training set, the same watched ones
                monitors[way].load_state_dict(monitor.state_dict())
            phase = look.phase
        accuracy = _accuracy(look.model, x[:2048], y[:2048])
        known = {watched: _known(look, rows) for watched, rows in sets.items()}
        compared = rival_numbers(look, {SEEN: look.data.train, **sets})
        for way, monitor in monitors.items():
            passed = accuracy if WAYS[way].passes_accuracy else None
            reading = monitor.update(look.step, train_accuracy=passed)
            for watched in sets:
                row = {
                    "run": f"{name}-{seed}",
                    "recipe": name,
                    "kind": spec.kind,
                    "role": spec.role,
                    "truth": spec.truth,
                    "watched": watched,
                    "way": way,
                    "step": look.step,
                    **known[watched],
                    "train accuracy": accuracy,
                    "chance": reading[SEEN].chance,
                    "seen confidence": reading[SEEN].confidence,
                    "seen steadiness": reading[SEEN].steadiness,
                    "seen tolerance": reading[SEEN].tolerance,
                    "train seconds": look.train_seconds,
                    "look seconds": reading.seconds,
                    **_measured(reading[watched]),
                    **(compared[watched] if way == ways[0] else {}),
                }
                yield row


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


def _monitor(look: Look, sets: Mapping[str, Rows], way: Way) -> GrokMonitor:
    watched = {name: x for name, (x, _) in sets.items()}
    answered = "last" if look.data.last_only else "all"
    settings = MonitorSettings(answered=answered, rule=way.rule, confirms=way.confirms)
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
    parser.add_argument("--role", nargs="*", choices=ROLES)
    parser.add_argument("--names", nargs="*", choices=SUITE, metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--looks", type=int, default=28)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = _done(options.out)
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
        rows = list(watched_rows(name, seed, options.looks, ways=tuple(options.ways)))
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writerows({key: _written(value) for key, value in row.items()} for row in rows)
        states = {row["watched"]: row["state"] for row in rows if row["way"] == options.ways[0]}
        print(f"{name}-{seed}: {states}", flush=True)


def _done(path: Path) -> set[str]:
    """Runs that are in the file already; begins it if it is not there."""
    if path.exists():
        with path.open(newline="") as file:
            return {row["run"] for row in csv.DictReader(file)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(",".join(COLUMNS) + "\n")
    return set()


if __name__ == "__main__":
    main()
