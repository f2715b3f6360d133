"""Speed of status, query, figures and report on a finished sweep of the paper's size.

`python benchmarks/store.py [DIRECTORY]` writes 240 run directories (200 evaluations x 3 splits x
3 posteriors x 32 context lengths and a final evaluation, random numbers, so the worst case for
compression) and prints one line per claim. Every claim is measured in a fresh process, files being
in the page cache.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

from epigrok.records.directory import PARQUET, RunDirectory
from epigrok.sweeps.description import prepare
from epigrok.sweeps.shipped import paper

METRICS = ("accuracy", "nll", "ece", "brier", "total", "aleatoric", "epistemic")
METRICS += ("epistemic_corrected", "epistemic_se")
METRICS += ("kl_memorising", "kl_generalising", "relative_position")
SPLITS = ("id_train", "id_val", "ood_val")
NUM_EVALUATIONS, NUM_LENGTHS = 200, 32

QUERIES = {
    "median and band, last step": (
        "store.median_and_band('epistemic_final', ['preset', 'task.num_base_tasks',"
        " 'task.train_fraction'], split='ood_val')"
    ),
    "median and band, every step": (
        "store.median_and_band('epistemic_final', ['preset', 'task.num_base_tasks',"
        " 'task.train_fraction'], step=None)"
    ),
    "median and band by context length": (
        "store.median_and_band('epistemic', ['preset', 'context_length'], split='ood_val')"
    ),
    "runs by state": "store.sql('select state, count(*) from runs group by all')",
}


def write_run(run: RunDirectory, seed: int) -> None:
    generator = np.random.default_rng(seed)
    config = run.config()
    posteriors = (*config.evaluation.posteriors, "weight-noise:0.1")[:3]
    steps = np.linspace(0, config.num_steps, NUM_EVALUATIONS, dtype=int)
    evaluated = [*(("metrics", step) for step in steps), ("final", config.num_steps)]
    points = [
        (evaluation, step, split, name)
        for evaluation, step in evaluated
        for split in SPLITS
        for name in posteriors
    ]
    values = generator.random((len(points), 2 * len(METRICS)))
    columns = [*METRICS, *(f"{name}_final" for name in METRICS)]
    lines: dict[str, list[str]] = {"metrics": [], "final": []}
    for (evaluation, step, split, name), row in zip(points, values.tolist()):
        keys = {"step": int(step), "split": split, "posterior": name}
        numbers = {"num_samples": 16, "num_sequences": 2048}
        text = json.dumps({**keys, **numbers, **dict(zip(columns, row))})
        lines[evaluation].append(text + "\n")
    for table, of_table in lines.items():
        run.table(table).write_text("".join(of_table))
    count = len(points) * NUM_LENGTHS
    table = {
        "step": np.repeat(np.array([p[1] for p in points], np.int32), NUM_LENGTHS),
        "evaluation": np.repeat(np.array([p[0] for p in points], object), NUM_LENGTHS),
        "split": np.repeat(np.array([p[2] for p in points], object), NUM_LENGTHS),
        "posterior": np.repeat(np.array([p[3] for p in points], object), NUM_LENGTHS),
        "num_samples": np.full(count, 16, np.int32),
        "context_length": np.tile(np.arange(1, NUM_LENGTHS + 1, dtype=np.int16), len(points)),
        **{name: generator.random(count, dtype=np.float32) for name in METRICS},
    }
    with duckdb.connect() as connection:
        connection.register("positions", table)
        path = str(run.path / PARQUET).replace("'", "''")
        connection.execute(f"copy positions to '{path}' (format parquet, compression zstd)")
    write_extras(run, config.num_steps, posteriors, generator)
    scores = {"accuracy_final": {"id_val": 0.9}, "epistemic_final": {"id_val": 0.1}}
    run.write_status(state="done", step=config.num_steps, updated=time.time(), **scores)
    run.mark_done()


def write_extras(
    run: RunDirectory, step: int, posteriors: tuple[str, ...], generator: np.random.Generator
) -> None:
    """Context noise and calibration, which figures need and training does not write every time."""
    tables = {
        "context_noise": [
            {"context_length": NUM_LENGTHS, "context_noise": level / 10} for level in range(11)
        ],
        "calibration": [{"bin": number, "count": 1000, "confidence": 0.5} for number in range(15)],
    }
    for table, points in tables.items():
        with run.table(table).open("w") as file:
            for split in SPLITS:
                for posterior in posteriors:
                    keys = {"step": step, "split": split, "posterior": posterior}
                    for point in points:
                        names = ("accuracy",) if table == "calibration" else METRICS
                        scores = dict(zip(names, generator.random(len(names)).tolist()))
                        row = {**keys, "num_samples": 64, "num_sequences": 2048, **scores, **point}
                        file.write(json.dumps(row) + "\n")


def measured(code: str) -> tuple[float, float, float]:
    """Seconds of the work, seconds of the whole process, and its peak memory in gigabytes."""
    script = (
        "import resource, time; start = time.perf_counter()\n"
        f"{code}\n"
        "print(time.perf_counter() - start,"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    whole = time.perf_counter() - start
    seconds, memory = map(float, done.stdout.split()[-2:])
    return seconds, whole, memory


def main(directory: Path) -> None:
    start = time.perf_counter()
    runs = prepare(directory, paper())
    for seed, run in enumerate(runs.values()):
        if not run.is_done:
            write_run(run, seed)
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    print(f"{len(runs)} runs, {size / 1e9:.2f} GB, written in {time.perf_counter() - start:.0f} s")
    works = {
        command: f"from epigrok.cli import main\nassert not main([{command!r}, {str(directory)!r}])"
        for command in ("status", "report")
    }
    for name, query in QUERIES.items():
        works[name] = f"import epigrok; store = epigrok.open_sweep({str(directory)!r})\n"
        works[name] += f"({query}).fetchall()"
    works["all figures"] = (
        f"from epigrok.cli import main\nassert main(['figure', 'all', {str(directory)!r}]) == 0"
    )
    for name, code in works.items():
        seconds, whole, memory = min(measured(code) for _ in range(3))
        print(f"{name:<36}{seconds:6.2f} s  whole process {whole:5.2f} s  {memory:5.2f} GB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
