"""Run directories with numbers that can be checked by hand, for tests of figures."""

from collections.abc import Iterable
from pathlib import Path

from table_files import write_table

from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare

STEPS = (0, 100, 200, 300)
ACCURACY = {
    "id_train": (0.0, 1.0, 1.0, 1.0),
    "id_val": (0.0, 0.1, 0.98, 1.0),
    "ood_train": (0.0, 0.1, 0.5, 0.99),
    "ood_val": (0.0, 0.0, 0.2, 0.96),
}
EPISTEMIC = (0.1, 0.4, 0.8, 0.02)
GRID = Sweep(
    name="grid",
    methods=("icl-paper", "icl-paper-ivon"),
    axes={"task.num_base_tasks": (8, 16), "task.train_fraction": (0.3, 0.5, 0.8)},
    seeds=(0, 1, 2),
    overrides={"num_steps": 2000, "schedule.warmup_steps": 10},
)


def keys(split: str, posterior: str, step: int = STEPS[-1]) -> dict[str, object]:
    num_samples = 16 if posterior in ("laplace", "ivon", "ivon-isotropic") else 1
    row = {"step": step, "split": split, "posterior": posterior, "num_samples": num_samples}
    return {**row, "num_sequences": 64}


def metric_rows(run: RunDirectory) -> list[dict[str, object]]:
    """Curves that rise and collapse as named above; uncertainty scales with the seed."""
    config = run.config()
    rows = []
    for k, step in enumerate(STEPS):
        for split, accuracy in ACCURACY.items():
            for posterior in config.evaluation.posteriors:
                scale = 0.0 if posterior == "point" else 1.0 + config.run_seed
                scores = {
                    "accuracy": accuracy[k] * config.task.train_fraction / 0.8,
                    "epistemic": EPISTEMIC[k] * scale,
                    "aleatoric": 2.0 - accuracy[k],
                    "total": 2.0 - accuracy[k] + EPISTEMIC[k] * scale,
                    "kl_memorising": 1.0 + k,
                    "kl_generalising": 4.0 - k,
                    "relative_position": 1.0 - k / 2,
                }
                final = {f"{name}_final": value for name, value in scores.items()}
                rows.append({**keys(split, posterior, step), **scores, **final})
    return rows


def context_rows(run: RunDirectory, axis: str, values: Iterable[float]) -> list[dict[str, object]]:
    """Accuracy 0.5 of models, 0.9 and 0.8 of the exact predictors."""
    accuracy = {"oracle-memorising": 0.9, "oracle-generalising": 0.8}
    fixed = {"context_length": 32, "context_noise": 0.0}
    return [
        {
            **keys(split, posterior),
            **fixed,
            axis: value,
            "accuracy": accuracy.get(posterior, 0.5),
            "epistemic": 0.1,
            "aleatoric": 0.2,
        }
        for split in ACCURACY
        for posterior in (*run.config().evaluation.posteriors, *accuracy)
        for value in values
    ]


def calibration_rows(run: RunDirectory) -> list[dict[str, object]]:
    """Two bins: the second one's accuracy depends on the seed."""
    seed = run.config().run_seed
    return [
        {
            **keys(split, posterior),
            "bin": number,
            "count": 10 * (1 + seed),
            "accuracy": accuracy,
            "confidence": confidence,
        }
        for split in ACCURACY
        for posterior in run.config().evaluation.posteriors
        for number, accuracy, confidence in ((3, 0.25, 0.25), (12, 0.5 + 0.1 * seed, 0.85))
    ]


def tolerance_rows(run: RunDirectory) -> list[dict[str, object]]:
    """A ratio that rises; the last split is announced at the second step."""
    steps = sorted({row["step"] for row in metric_rows(run)})
    return [
        {
            "step": step,
            "split": split,
            "state": "fitting" if place == 0 else "generalised",
            "tolerance": 0.3,
            "tolerance_ratio": (place + 1) / len(steps),
        }
        for place, step in enumerate(steps)
        for split in list(ACCURACY)[1:]
    ]


def write_run(run: RunDirectory) -> None:
    write_table(run, "metrics", metric_rows(run))
    write_table(run, "context_length", context_rows(run, "context_length", (1, 2, 32)))
    write_table(run, "context_noise", context_rows(run, "context_noise", (0.0, 0.5, 1.0)))
    write_table(run, "tolerance", tolerance_rows(run))
    write_table(run, "calibration", calibration_rows(run))
    run.mark_done()


def write_grid(directory: Path) -> list[RunDirectory]:
    """A sweep of which one cell has not begun and one run of another cell is not finished."""
    runs = list(prepare(directory, GRID).values())
    for run in runs:
        config = run.config()
        cell = (config.preset, config.task.num_base_tasks, config.task.train_fraction)
        if cell == ("icl-paper-ivon", 16, 0.8):
            continue
        write_run(run)
        if cell == ("icl-paper", 8, 0.3) and config.run_seed == 2:
            (run.path / "DONE").unlink()
            run.write_status(state="stopped", step=300)
    return runs
