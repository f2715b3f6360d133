"""Evaluate a run at any of its checkpoints, after training, and keep the rows in its directory."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from epigrok.config import ContextSeries, RunConfig, to_json
from epigrok.config.checks import require_positive
from epigrok.config.posterior import require_distinct
from epigrok.errors import UserError
from epigrok.evaluation import (
    evaluate,
    evaluation_precision,
    evaluation_sets,
    fitted_posteriors,
    series_rows,
)
from epigrok.evaluation.schema import SERIES_TABLES
from epigrok.files import keep_json_lines, make_writable_directory
from epigrok.model import Network
from epigrok.posteriors import Ensemble, Posterior, require_posteriors
from epigrok.records.directory import RunDirectory
from epigrok.runs.device import DeviceName, choose_device
from epigrok.runs.recording import row_identity
from epigrok.runs.run import Run
from epigrok.tasks import TaskFamily
from epigrok.training.checkpoints import load_carried_posterior
from epigrok.workspace import Workspace

Row = dict[str, Any]
_NEEDED_COLUMNS = ("step", "posterior", "num_sequences", "num_samples")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What to evaluate, and how thoroughly."""

    step: int | None = None
    """Checkpoint to evaluate, by default the newest; in an ensemble, of every member."""
    posteriors: tuple[str, ...] = ()
    """Posteriors, by default those the run tracks."""
    num_samples: int | None = None
    """Weight samples, by default as many as the run's final evaluation."""
    num_sequences: int | None = None
    """Sequences per split, by default as many as in the run itself."""
    device: DeviceName = "auto"

    def __post_init__(self) -> None:
        given = {"num_samples": self.num_samples, "num_sequences": self.num_sequences}
        require_positive(**{name: value for name, value in given.items() if value is not None})
        require_distinct(self.posteriors)


@dataclass(frozen=True)
class Subject:
    """A network to evaluate, with its configuration, tasks and posterior."""

    config: RunConfig
    step: int
    model: Network
    family: TaskFamily
    carried: Posterior | None
    """The posterior that its optimiser carries, if it does."""

    @classmethod
    def of(cls, run: Run, step: int | None, device: torch.device) -> "Subject":
        """A run at a kept step, by default the newest."""
        step = run.newest_step() if step is None else step
        model = run.model(step, device)
        carried = load_carried_posterior(run.directory.checkpoints, step, model)
        return cls(run.config, step, model, run.family(device), carried)


def evaluate_run(
    run: Run,
    options: EvaluateOptions,
    series: ContextSeries | None = None,
    ensemble_with: tuple[Run, ...] = (),
) -> list[Row]:
    """Evaluate one checkpoint; the rows are returned and kept in the run directory.

    Args:
        run: The run.
        options: Checkpoint, posteriors, samples, device.
        series: Vary the context instead of evaluating the full, clean one.
        ensemble_with: Runs of the same task whose networks join this one as an ensemble.
    """
    try:
        require_posteriors(run.config, options.posteriors)
    except UserError as error:
        missing = run.directory.description().missing_plugins()
        is_own = not options.posteriors
        raise UserError(f"{run.path} {missing}" if missing and is_own else str(error)) from error
    make_writable_directory(run.path)
    if series is not None and run.config.task.num_examples == 1:
        raise UserError(f"{run.path} has no context to vary: its sequences are single examples")
    subject = Subject.of(run, options.step, choose_device(options.device))
    ensemble = _ensemble(run, subject.model, ensemble_with, options.step) if ensemble_with else None
    rows = evaluate_subject(subject, options, series, ensemble)
    for row in rows:
        is_ensemble = ensemble is not None and row["posterior"] == ensemble.name
        members = sorted(member.path.resolve().name for member in (run, *ensemble_with))
        row["members"] = " ".join(members) if is_ensemble else ""
    keep_rows(run.directory, series, rows)
    return rows


def evaluate_subject(
    subject: Subject,
    options: EvaluateOptions,
    series: ContextSeries | None = None,
    ensemble: Ensemble | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[Row]:
    """The rows of one evaluation; no rows if `is_stopped` becomes true meanwhile."""
    model, family = subject.model, subject.family
    config = _with_samples(subject.config, options.num_samples)
    num_samples = config.evaluation.num_final_samples
    rows: list[Row] = []
    with evaluation_precision(config, next(model.parameters()).device):
        settings, names = config.evaluation, options.posteriors or None
        posteriors = fitted_posteriors(config, model, family, subject.carried, names)
        posteriors += [] if ensemble is None else [ensemble]
        if (number := options.num_sequences) is not None:
            settings = replace(settings, num_sequences=number, num_sampled_sequences=number)
            config = replace(config, evaluation=settings)
        if series is None:
            sets, at_most = evaluation_sets(config, family), settings.num_sampled_sequences
            for scored in evaluate(model, posteriors, sets, num_samples, at_most):
                identity = row_identity(subject.step, scored)
                rows.append({**identity, **scored.summary, **scored.facts})
            return rows
        for found in series_rows(series, config, model, family, posteriors, num_samples):
            if is_stopped():
                return []
            axes = ("context_length", "context_noise")
            context = {name: getattr(found, name) for name in axes}
            rows.append({**row_identity(subject.step, found), **context, **found.metrics})
    return rows


def _with_samples(config: RunConfig, number: int | None) -> RunConfig:
    """The configuration with another number of samples; one that fits nowhere is refused."""
    if number is None:
        return config
    settings = config.evaluation
    fewer = min(number, settings.num_samples)
    settings = replace(settings, num_samples=fewer, num_final_samples=number)
    return replace(config, evaluation=settings)


def keep_rows(
    run: RunDirectory,
    series: ContextSeries | None,
    rows: list[Row],
    workspace: Workspace | None = None,
) -> None:
    """Replace earlier rows of the same evaluations, unless those are more thorough."""
    table = table_of(run, series)
    new, old = _thoroughness(rows), _thoroughness(run.rows(_table(series), _NEEDED_COLUMNS))
    poorer = {what for what in new.keys() & old.keys() if new[what] < old[what]}
    if poorer:
        names = ", ".join(sorted({posterior for _, posterior, *_ in poorer}))
        warnings.warn(
            f"not kept: {table} has {names} from more sequences times samples", stacklevel=3
        )
    replaced = new.keys() - poorer
    added = [row for row in rows if _evaluated(row) in replaced]
    keep_json_lines(table, lambda row: _evaluated(row) not in replaced, added, workspace)


def table_of(run: RunDirectory, series: ContextSeries | None) -> Path:
    """The file that keeps the rows of an evaluation."""
    return run.table(_table(series))


def _table(series: ContextSeries | None) -> str:
    return "evaluation" if series is None else SERIES_TABLES[series]


def _thoroughness(rows: list[Row]) -> dict[tuple[int, str, str], int]:
    """Predictions behind each evaluation: sequences times samples."""
    found: dict[tuple[int, str, str], int] = {}
    for row in rows:
        what, number = _evaluated(row), row["num_sequences"] * row["num_samples"]
        found[what] = max(found.get(what, 0), number)
    return found


def _evaluated(row: Row) -> tuple[int, str, str]:
    """What a row is an evaluation of."""
    return row["step"], row["posterior"], row.get("members", "")


def _ensemble(run: Run, model: Network, others: tuple[Run, ...], step: int | None) -> Ensemble:
    """The networks of all runs at `step`, or the newest of each."""
    if len({member.path.resolve() for member in (run, *others)}) <= len(others):
        raise UserError("a run is named twice; an ensemble needs different runs")
    world = _world(run.config)
    for other in others:
        if _world(other.config) != world:
            raise UserError(
                f"{other.path} and {run.path} learnt different tasks; an ensemble needs one task"
            )
    device = next(model.parameters()).device
    return Ensemble.of([model, *(other.model(step, device) for other in others)])


def _world(config: RunConfig) -> tuple[Any, int]:
    """The settings that decide which tasks and inputs exist."""
    return to_json(config)["task"], config.task_seed
