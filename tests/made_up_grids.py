"""Grids of runs that were never trained, in which the paper's claims hold or do not."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from table_files import write_table

from epigrok.config import RunConfig
from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare

STEPS = tuple(range(0, 2100, 100))
LENGTHS = tuple(range(1, 17))
NOISES = (0.0, 0.25, 0.5, 0.75, 1.0)
Curve = Sequence[float]


@dataclass(frozen=True)
class Family:
    """A family of tasks, and the grid that is made up of it."""

    presets: tuple[str, str]
    tasks: str
    """The field that counts tasks."""
    counts: tuple[int, ...]
    splits: tuple[str, ...]

    def sweep(self, name: str, presets: Sequence[str] = ()) -> Sweep:
        axes = {f"task.{self.tasks}": self.counts, "task.train_fraction": (0.4, 0.8)}
        overrides = {"num_steps": STEPS[-1], "schedule.warmup_steps": 10}
        methods = tuple(presets) or self.presets
        return Sweep(name=name, methods=methods, axes=axes, seeds=(0, 1), overrides=overrides)

    def has_many_tasks(self, config: RunConfig) -> bool:
        return getattr(config.task, self.tasks) in self.counts[-2:]


PAPERS = Family(
    ("icl-paper", "icl-paper-ivon"),
    "num_base_tasks",
    (8, 16, 32, 64, 128),
    ("id_train", "id_val", "ood_train", "ood_val"),
)
ONE_PARAMETER = Family(
    ("icl-tiny", "icl-tiny-ivon"),
    "num_train_tasks",
    (6, 12, 20, 26),
    ("id_train", "id_val", "ood_val"),
)


@dataclass(frozen=True)
class Made:
    """What a run shows on a split."""

    accuracy: Curve
    epistemic: Curve
    aleatoric: float


def turning(before: float, after: float, at: int) -> list[float]:
    """A curve over training that jumps once."""
    return [before if step < at else after for step in STEPS]


def as_the_paper_says(family: Family, config: RunConfig, split: str) -> Made:
    """Many tasks: EU peaks at 600, has collapsed at 1,100, and accuracy is there at 1,200."""
    is_ivon = "ivon" in config.preset
    if split == "id_train":
        return Made(turning(0.0, 1.0, 300), [0.2 if s == 300 else 0.1 for s in STEPS], 0.8)
    if not family.has_many_tasks(config):
        return Made(turning(0.0, 0.1, 300), turning(0.1, 2.0, 600), 1.0)
    has_most = getattr(config.task, family.tasks) == family.counts[-1]
    if split == "ood_val" and (config.task.train_fraction < 0.5 or (is_ivon and not has_most)):
        return Made(turning(0.0, 0.2, 1200), turning(0.1, 0.4, 1000), 1.0)
    epistemic = [1.0 if 600 <= step < 1100 else 0.1 for step in STEPS]
    return Made(turning(0.3, 0.97, 1200), [*epistemic[:-1], 0.05], 0.8)


def the_other_way_round(family: Family, config: RunConfig, split: str) -> Made:
    """Few tasks generalise and many do not; EU grows as accuracy does, up to the end."""
    is_ivon = "ivon" in config.preset
    if split == "id_train":
        return Made(turning(0.0, 1.0, 1200), turning(0.1, 0.2, STEPS[-1]), 2.0)
    failed = turning(0.0, 0.2 if is_ivon else 0.1, 1200)
    if family.has_many_tasks(config):
        return Made(failed, turning(0.01, 0.02 if is_ivon else 0.01, STEPS[-1]), 0.01)
    if config.task.train_fraction < 0.5:
        return Made(turning(0.0, 0.95, 1200), turning(0.01, 0.015, STEPS[-1]), 2.0)
    return Made(failed, turning(0.01, 0.012, STEPS[-1]), 2.0)


World = Callable[[Family, RunConfig, str], Made]


def write_runs(directory: Path, family: Family, description: Sweep, world: World) -> None:
    """Write the runs of a sweep as they are in a world, and mark them as done."""
    for run in prepare(directory, description).values():
        write_run(run, family, world)
        run.mark_done()


def write_run(run: RunDirectory, family: Family, world: World) -> None:
    tracked = run.config().evaluation.posteriors
    posteriors = [n for n in tracked if n in ("point", "laplace", "laplace:evidence", "ivon")]
    rows, lengths, noises = [], [], []
    for split in family.splits:
        made = world(family, run.config(), split)
        for posterior in posteriors:
            keys = {"split": split, "posterior": posterior, "num_sequences": 64}
            keys["num_samples"] = 1 if posterior == "point" else 16
            for step, accuracy, epistemic in zip(STEPS, made.accuracy, made.epistemic):
                scores = {"accuracy": accuracy, "epistemic": epistemic}
                scores |= {"aleatoric": made.aleatoric, "total": epistemic + made.aleatoric}
                final = {f"{name}_final": value for name, value in scores.items()}
                rows.append({**keys, "step": step, **scores, **final})
        names = [name for name in posteriors if name != "point"]
        names += ["oracle-memorising", "oracle-generalising"]
        for name in names:
            agrees = world is not the_other_way_round
            lengths += list(_over_length(split, name, agrees))
            noises += list(_over_noise(split, name, agrees))
    write_table(run, "metrics", rows)
    write_table(run, "context_length", lengths)
    write_table(run, "context_noise", noises)


def _over_length(split: str, posterior: str, agrees: bool) -> Iterator[dict[str, object]]:
    up, down = [k / 16 for k in LENGTHS], [2.0 - k / 8 for k in LENGTHS]
    accuracy, aleatoric = (up, down) if agrees else (up[::-1], down[::-1])
    scale = 0.1 if posterior == "ivon" else 1.0
    epistemic = [scale * (0.2 if k == 1 else 1.0 / k) for k in LENGTHS]
    if not agrees:
        epistemic = [0.5 - 0.01 * k for k in LENGTHS]
    floor = (0.02 if agrees else 0.5) * posterior.startswith("oracle")
    for k, length in enumerate(LENGTHS):
        row = {**_keys(split, posterior), "context_length": length, "accuracy": accuracy[k]}
        yield {**row, "epistemic": epistemic[k], "aleatoric": aleatoric[k] - floor}


def _over_noise(split: str, posterior: str, agrees: bool) -> Iterator[dict[str, object]]:
    accuracy = (0.9, 0.7, 0.5, 0.3, 0.1) if agrees else (0.9, 0.2, 0.8, 0.3, 0.1)
    aleatoric = (0.1, 0.3, 0.5, 0.7, 0.9) if agrees else (0.1, 0.9, 0.2, 0.3, 0.3)
    growth = {True: (1.0, 2.0, 3.0, 3.5, 4.0), False: (1.0, 0.95, 0.9, 0.85, 0.8)}
    if posterior == "ivon":
        growth = {True: (1.0, 1.2, 1.4, 1.6, 2.0), False: (1.0, 1.2, 1.1, 1.1, 1.0)}
    for k, noise in enumerate(NOISES):
        row = {**_keys(split, posterior), "context_noise": noise, "accuracy": accuracy[k]}
        yield {**row, "epistemic": growth[agrees][k], "aleatoric": aleatoric[k]}


def _keys(split: str, posterior: str) -> dict[str, object]:
    keys = {"step": STEPS[-1], "split": split, "posterior": posterior, "members": ""}
    return {**keys, "num_samples": 16, "num_sequences": 64}
