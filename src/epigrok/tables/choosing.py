"""Runs of a directory chosen by the values of their fields."""

from collections.abc import Sequence

from epigrok.config import flatten
from epigrok.config.where import Where
from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory


def chosen_runs(runs: Sequence[RunDirectory], where: Sequence[str]) -> list[RunDirectory]:
    """The runs whose configuration meets all conditions, such as `task.train_fraction=0.8`."""
    if not where:
        return list(runs)
    # A configuration that cannot be read has no field to choose the run by.
    readable = {run.path.name: run for run in runs if _is_readable(run)}
    flat = [{**flatten(run.config_json()), "run_id": name} for name, run in readable.items()]
    return [readable[config["run_id"]] for config in Where.parse(where).choose(flat)]


def _is_readable(run: RunDirectory) -> bool:
    try:
        run.config_json()
    except UserError:
        return False
    return True
