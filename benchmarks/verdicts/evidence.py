"""What a grid of runs says of one method, as medians over the runs of a cell."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from statistics import median

from epigrok.config.posterior import ORACLES
from epigrok.errors import UserError
from epigrok.evaluation import AccuracyBounds, grokking_times
from epigrok.evaluation.fates import end_of_run
from epigrok.evaluation.grokking_times import GrokkingTimes
from epigrok.evaluation.schema import TOTAL_FINAL
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.events import rows_by_run
from epigrok.tables.groups import configs_by_preset, shown_posteriors

TASKS, FRACTION = "task.num_base_tasks", "task.train_fraction"
HELD_OUT = ("id_val", "ood_train", "ood_val")
HIGH = 0.9
"""Accuracy that counts as generalised: small grids end between 0.9 and 0.95."""
Cell = tuple[int, float]


@dataclass(frozen=True)
class Method:
    """The runs of one preset: MAP with last-layer Laplace, or IVON."""

    store: SweepStore
    preset: str
    posterior: str

    @property
    def is_ivon(self) -> bool:
        return self.posterior == "ivon"

    @property
    def name(self) -> str:
        return "IVON" if self.is_ivon else "MAP + Laplace"

    def cells(self, metric: str, split: str) -> dict[Cell, float]:
        """(base tasks, fraction) -> median over runs, of the last answer at the end."""
        parts = "/".join(f"{part}_final" for part in metric.split("/"))
        found = self.store.median_and_band(
            parts, [TASKS, FRACTION], split=split, posterior=self.posterior
        )
        return {(tasks, fraction): value for tasks, fraction, value, *_ in found.fetchall()}

    def task_counts(self) -> list[int]:
        return sorted({tasks for tasks, _ in self.cells("accuracy", "id_val")})

    def series(self, axis: str, metric: str, split: str, posterior: str = "") -> list[float]:
        """Medians along the length or the noise of the context, in the cell that has them."""
        found = self.store.median_and_band(
            metric, [axis], split=split, posterior=posterior or self.posterior, table=axis
        )
        at, value = (found.columns.index(name) for name in (axis, "median"))
        return [row[value] for row in sorted(found.fetchall(), key=itemgetter(at))]

    @cached_property
    def _rows(self) -> dict[str, list[dict[str, object]]]:
        return dict(rows_by_run(self.store, (TOTAL_FINAL,)))

    def times(self, split: str) -> list[GrokkingTimes]:
        """Peak, collapse and generalisation of each run that generalised on the split."""
        found = [
            times
            for rows in self._rows.values()
            for times in grokking_times(rows, HIGH)
            if times.split == split and times.posterior == self.posterior
        ]
        return [times for times in found if times.generalised_step is not None]

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
    """The methods of a grid, each with the posterior that the figures show."""
    store = open_sweep(directory, done_only=True, where=where)
    found = []
    for preset, configs in configs_by_preset(store).items():
        run_ids = [config["run_id"] for config in configs]
        posteriors = shown_posteriors(store.runs[run_ids[0]].description().posteriors)
        if posteriors:
            found.append(Method(store.of_runs(run_ids), preset, posteriors[0]))
    if not found:
        raise UserError(f"no finished run in {directory} tracks a posterior with uncertainty")
    return found


def exact_of(split: str) -> str:
    """The exact predictor of a split: it knows the training tasks, or considers all."""
    memorising, generalising = ORACLES
    return memorising if split.startswith("id") else generalising


def middle(values: Sequence[float]) -> float:
    return median(values) if values else float("nan")
