"""Trains runs of the suite in a pool of processes and writes their records.

    python -m benchmarks.detection.run --role development --out records/development

Runs whose record is in `--done` are left out, so that a block that was cut short goes on.
"""

import argparse
import os
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures import TimeoutError as OutOfTime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# One thread per process, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from benchmarks.detection import records
from benchmarks.detection.kinds.suite import SUITE
from benchmarks.detection.looks import RowsOf, read_look
from benchmarks.detection.training import ROLES, looks
from benchmarks.detection.variants import DEFAULT, calibrated_epistemic, ratios
from epigrok.posteriors import HeadInputs

NUM_LOOKS, DEEP_EVERY = 40, 8


def record(name: str, seed: int, length: float = 1.0, num_looks: int = NUM_LOOKS) -> bytes:
    """Train one run and return its record."""
    torch.set_num_threads(1)
    spec = SUITE[name]
    kept: list[dict[str, Any]] = []
    sets: dict[tuple[int, str], RowsOf] = {}
    watched_names: list[str] = []
    for index, look in enumerate(looks(spec, seed, num_looks, length)):
        parts = {"seen": look.data.train, **look.watched}
        watched_names = list(look.watched)
        for key, rows in parts.items():
            if (look.phase, key) not in sets:
                sets[look.phase, key] = RowsOf(*rows, look.data.last_only)
        chosen = {key: sets[look.phase, key] for key in parts}
        is_deep = index % DEEP_EVERY == DEEP_EVERY - 1 and not chosen["seen"].is_slow
        entry = read_look(look, chosen, has_dear=is_deep)
        seen, *watched = entry["heads"]
        entry["variants"] = [ratios(seen, part) for part in watched]
        for number, part in enumerate(entry["heads"]):
            tau_seen = entry["variants"][max(0, number - 1)]["default"][3]
            short = HeadInputs(features_ND=part.features_ND[:256], head=part.head)
            entry["numbers"][number]["eu at tau seen"] = (
                calibrated_epistemic(short, tau_seen, DEFAULT) if tau_seen < 1e3 else float("nan")
            )
        if not is_deep:
            entry["heads"] = entry["heads"][:0]
        kept.append(entry)
    meta = {
        "name": name,
        "seed": seed,
        "kind": spec.kind,
        "role": spec.role,
        "truth": spec.truth,
        "sets": ["seen", *watched_names],
        "optimisers": [phase.optimiser for phase in spec.phases],
    }
    return records.pack(meta, kept)


def _timed(name: str, seed: int, *settings: Any) -> tuple[bytes | None, str]:
    start = time.perf_counter()
    try:
        content = record(name, seed, *settings)
    except Exception:
        return None, traceback.format_exc()
    return content, f"{time.perf_counter() - start:.0f} s, {len(content) / 1e6:.2f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", nargs="*", choices=ROLES)
    parser.add_argument("--names", nargs="*", choices=SUITE, metavar="NAME")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--done", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e6, help="when to stop")
    parser.add_argument("--length", type=float, default=1.0, help="a share of training")
    parser.add_argument("--looks", type=int, default=NUM_LOOKS)
    options = parser.parse_args()
    done = records.names(options.done) if options.done else set()
    wanted = [
        (name, seed)
        for name, spec in SUITE.items()
        for seed in range(options.seeds)
        if (not options.role or spec.role in options.role)
        and (not options.names or name in options.names)
        and f"{name}-{seed}" not in done
    ]
    # Long runs first; second seeds last, so that a block that is cut short has all recipes.
    wanted.sort(key=lambda run: (run[1], -SUITE[run[0]].cost))
    start = time.perf_counter()
    pool = ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"))
    jobs = {
        pool.submit(_timed, name, seed, options.length, options.looks): f"{name}-{seed}"
        for name, seed in wanted
    }
    try:
        for job in as_completed(jobs, timeout=options.seconds):
            content, message = job.result()
            print(f"{time.perf_counter() - start:6.0f} s  {jobs[job]}: {message}", flush=True)
            if content is not None:
                records.append(options.out, jobs[job], content)
    except OutOfTime:
        print("out of time; missing:", [name for job, name in jobs.items() if not job.done()])
        for process in pool._processes.values():
            process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
