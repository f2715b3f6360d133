"""What a grid of runs says of one method, as medians over the runs of a cell."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from epigrok.config.posterior import ORACLES
from epigrok.config.splits import ID_TRAIN, ID_VAL, OOD_TRAIN, OOD_VAL
from epigrok.errors import UserError
from epigrok.evaluation import AccuracyBounds, grokking_times
from epigrok.evaluation.fates import end_of_run
from epigrok.evaluation.grokking_times import GrokkingTimes, curves_of
from epigrok.evaluation.schema import EPISTEMIC_FINAL, TOTAL_FINAL
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.events import rows_by_run
from epigrok.tables.fields import value_label
from epigrok.tables.groups import configs_by_preset, known_splits
from epigrok.wording import runs_text

TASK_COUNTS = ("task.num_base_tasks", "task.num_train_tasks")
"""The field that counts tasks: of the paper's two-parameter family, of the one-parameter family."""
FRACTION = "task.train_fraction"
HELD_OUT = (ID_VAL.name, OOD_TRAIN.name, OOD_VAL.name)
IVON, LAPLACE = "ivon", "laplace"
HIGH = 0.9
"""Accuracy that counts as generalised: small grids end between 0.9 and 0.95."""
LEARNT = 0.5
"""Accuracy below which a run has not learnt a split."""
Cell = tuple[int, float]


@dataclass(frozen=True)
class Course:
    """A run that generalised to unseen inputs of the training tasks."""

    times: GrokkingTimes
    curve: Sequence[Mapping[str, Any]]
    """Its rows on `id_val`."""
    train_peak_step: int | None
    """Of EU on the training split."""

    @property
    def num_steps(self) -> int:
        return int(self.curve[-1]["step"])

    @property
    def fell(self) -> bool:
        return self.times.collapsed_step is not None

    @property
    def falling_steps(self) -> int | None:
        """From the last evaluation at 3/4 of the peak or more to the collapse, if it fell."""
        end = self.times.collapsed_step
        if end is None:
            return None
        level = 0.75 * self.times.peak_epistemic
        high = [row["step"] for row in self.curve if row[EPISTEMIC_FINAL] >= level]
        return int(end - max(step for step in high if step <= end))


@dataclass(frozen=True)
class Method:
    """The runs of one preset: MAP with last-layer Laplace, or IVON."""

    store: SweepStore
    preset: str
    posterior: str

    @property
    def is_ivon(self) -> bool:
        return self.posterior == IVON

    @property
    def name(self) -> str:
        names = {IVON: "IVON", LAPLACE: "MAP + Laplace"}
        return names.get(self.posterior, f"MAP + {self.posterior}")

    @cached_property
    def held_out(self) -> tuple[str, ...]:
        """The splits besides training that its task family has."""
        known = known_splits(self.store)
        return tuple(split for split in HELD_OUT if split in known)

    @cached_property
    def tasks_field(self) -> str:
        """The field that counts the training tasks."""
        columns = self.store.columns("runs")
        found = next((name for name in TASK_COUNTS if name in columns), None)
        if found is None or FRACTION not in columns:
            raise UserError(f"the runs of {self.preset} have no task count or training fraction")
        return found

    def cells(self, metric: str, split: str) -> dict[Cell, float]:
        """(task count, fraction) -> median over runs, of the last answer at the end."""
        if metric not in self._maps:
            parts = "/".join(f"{part}_final" for part in metric.split("/"))
            by = [self.tasks_field, FRACTION, "split"]
            found = self.store.median_and_band(parts, by, posterior=self.posterior)
            self._maps[metric] = found.fetchall()
        rows = self._maps[metric]
        return {(tasks, part): value for tasks, part, of, value, *_ in rows if of == split}

    @cached_property
    def _maps(self) -> dict[str, list[Any]]:
        """Metric -> its medians, once asked for: many claims look at the same few."""
        return {}

    def has_transition(self, split: str) -> bool:
        """Whether some cells generalise on the split and others have not learnt it."""
        accuracies = self.cells("accuracy", split).values()
        return bool(accuracies) and min(accuracies) < LEARNT and max(accuracies) >= HIGH

    def task_counts(self) -> list[int]:
        return sorted({tasks for tasks, _ in self.cells("accuracy", "id_val")})

    def series(self, axis: str, metric: str, split: str, posterior: str = "") -> dict[float, float]:
        """Value of the axis, a context's length or noise -> median over the runs of one cell."""
        posterior = posterior or self.posterior
        cell = self.cell_with(axis)
        return {
            value: median
            for (value, *found), median in self._medians(metric, axis, split, posterior)
            if tuple(found) == cell
        }

    def cell_with(self, axis: str) -> Cell | None:
        """The cell whose series counts, of those that have one: in the paper T = 256 of 512 at
        the largest fraction, so the largest task count but one."""
        rows = self._medians("accuracy", axis, ID_VAL.name, self.posterior)
        cells = {(tasks, fraction) for (_, tasks, fraction), _ in rows}
        if not cells:
            return None
        largest = max(fraction for _, fraction in cells)
        counts = sorted(tasks for tasks, fraction in cells if fraction == largest)
        return counts[-2:][0], largest

    def _medians(
        self, metric: str, axis: str, split: str, posterior: str
    ) -> list[tuple[tuple[float, int, float], float]]:
        """(value of the axis, task count, fraction) -> median over runs, in order."""
        rows = [row for row in self._series(metric, axis) if row[3:5] == (split, posterior)]
        return sorted((row[:3], row[5]) for row in rows)

    def _series(self, metric: str, axis: str) -> list[Any]:
        """Axis, task count, fraction, split, posterior, median, number of runs."""
        key = f"{metric} over {axis}"
        if key not in self._maps:
            by = [axis, self.tasks_field, FRACTION, "split", "posterior"]
            found = self.store.median_and_band(metric, by, table=axis)
            at = [found.columns.index(name) for name in (*by, "median", "count")]
            self._maps[key] = [tuple(row[k] for k in at) for row in found.fetchall()]
        return self._maps[key]

    def runs_text(self, axis: str = "") -> str:
        """How many runs a verdict stands on, and for a series in which cell."""
        if not axis:
            num_cells = len(self.cells("accuracy", ID_VAL.name))
            return f"{runs_text(len(self.store.runs))} in {num_cells} cells"
        cell = self.cell_with(axis)
        if cell is None:
            return runs_text(0)
        number = max(row[-1] for row in self._series("accuracy", axis) if row[1:3] == cell)
        tasks = value_label(self.tasks_field, cell[0])
        return f"{runs_text(number)} at T = {tasks}, fraction {cell[1]:g}"

    @cached_property
    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        return {run: list(rows) for run, rows in rows_by_run(self.store, (TOTAL_FINAL,))}

    @cached_property
    def courses(self) -> list[Course]:
        """The runs that generalised to unseen inputs."""
        found = []
        for rows in self._rows.values():
            times = {
                t.split: t for t in grokking_times(rows, HIGH) if t.posterior == self.posterior
            }
            unseen, train = times.get(ID_VAL.name), times.get(ID_TRAIN.name)
            if unseen is not None and unseen.generalised_step is not None:
                curve = curves_of(rows)[self.posterior, ID_VAL.name]
                found.append(Course(unseen, curve, train.peak_step if train else None))
        return found

    def last_uncertainty_by_end(self, split: str) -> dict[str, list[float]]:
        """How runs ended on a split -> their epistemic uncertainty there at the end."""
        found: dict[str, list[float]] = defaultdict(list)
        for rows in self._rows.values():
            of_split = [
                row for row in rows if (row["split"], row["posterior"]) == (split, self.posterior)
            ]
            end = end_of_run(rows, split, AccuracyBounds(generalised_from=HIGH))
            if of_split and end:
                found[end].append(float(str(of_split[-1]["epistemic_final"])))
        return found


def methods_of(directory: Path, where: Sequence[str] = ()) -> list[Method]:
    """The methods of a grid, each with the posterior that the paper takes."""
    store = open_sweep(directory, done_only=True, where=where)
    found = []
    for preset, configs in configs_by_preset(store).items():
        run_ids = [config["run_id"] for config in configs]
        tracked = store.runs[run_ids[0]].description().posteriors
        inferred = [posterior.name for posterior in tracked if posterior.role == "inferred"]
        # The paper's prior precision is the weight decay; other priors only in place of none.
        inferred.sort(key=lambda name: (name != IVON, name != LAPLACE))
        if inferred:
            found.append(Method(store.of_runs(run_ids), preset, inferred[0]))
    if not found:
        raise UserError(f"no finished run in {directory} tracks a posterior that is inferred")
    return found


def exact_of(split: str) -> str:
    """The exact predictor of a split: it knows the training tasks, or considers all."""
    memorising, generalising = ORACLES
    return memorising if split.startswith("id") else generalising


def middle(values: Sequence[float]) -> float:
    return median(values) if values else float("nan")
