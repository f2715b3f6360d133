"""Evaluation of a finished or running run at any of its checkpoints, written beside it."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from epigrok.config import ContextSweep
from epigrok.config.checks import require_positive
from epigrok.config.posterior import require_distinct
from epigrok.errors import UserError
from epigrok.evaluation import (
    EvaluationSet,
    context_sweep,
    evaluate,
    evaluation_precision,
    evaluation_sets,
    tracked_posteriors,
)
from epigrok.experiments.device import DeviceName, choose_device
from epigrok.experiments.run import Run
from epigrok.experiments.run_directory import row_identity
from epigrok.files import keep_json_lines, make_writable_directory, read_json_lines
from epigrok.model import Network
from epigrok.posteriors import Ensemble, Posterior
from epigrok.training.checkpoints import load_ivon_posterior


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What to evaluate, and how thoroughly."""

    step: int | None = None
    """Checkpoint to evaluate, by default the newest; in an ensemble, of every member."""
    posteriors: tuple[str, ...] = ()
    """Posteriors, by default those the run tracks."""
    num_samples: int | None = None
    """Weight samples, by default as many as the run's final evaluation."""
    num_rows: int | None = None
    """Rows per split, by default as many as in the run itself; see `evaluation.num_rows`."""
    device: DeviceName = "auto"

    def __post_init__(self) -> None:
        given = {"num_samples": self.num_samples, "num_rows": self.num_rows}
        require_positive(**{name: value for name, value in given.items() if value is not None})
        require_distinct(self.posteriors)


def evaluate_run(
    run: Run,
    options: EvaluateOptions,
    sweep: ContextSweep | None = None,
    ensemble_with: tuple[Run, ...] = (),
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[dict[str, Any]]:
    """Evaluate one checkpoint; the rows are returned and kept in the run directory.

    Args:
        run: The run.
        options: Checkpoint, posteriors, samples, device.
        sweep: Vary the context instead of evaluating the full, clean one.
        ensemble_with: Runs of the same task whose networks join this one as an ensemble.
        is_stopped: Asked now and then; once it says yes, nothing is kept and no row returned.
    """
    config, device = run.config, choose_device(options.device)
    make_writable_directory(run.path)
    if sweep is not None and config.task.num_examples == 1:
        raise UserError(f"{run.path} has no context to vary: its rows are single examples")
    step = run.newest_step() if options.step is None else options.step
    model, family = run.model(step, device), run.family(device)
    num_samples = options.num_samples or config.evaluation.num_final_samples
    rows: list[dict[str, Any]] = []
    with evaluation_precision(config, device):
        # Always fitted to the rows that training fits to: fewer would make a wider posterior.
        settings = config.evaluation
        clean = family.evaluation_batch("id_train", settings.num_rows, config.task.num_examples)
        posteriors = _posteriors(run, options, step, model, EvaluationSet(clean, None))
        if ensemble_with:
            posteriors.append(_ensemble(run, model, ensemble_with, options.step))
        if (number := options.num_rows) is not None:
            settings = replace(settings, num_rows=number, num_sampled_rows=number)
            config = replace(config, evaluation=settings)
        if sweep is None:
            sets, num_sampled_rows = evaluation_sets(config, family), settings.num_sampled_rows
            for scored in evaluate(model, posteriors, sets, num_samples, num_sampled_rows):
                rows.append({**row_identity(step, scored), **scored.summary, **scored.facts})
        else:
            for found in context_sweep(sweep, config, model, family, posteriors, num_samples):
                if is_stopped():
                    return []
                axes = ("context_length", "context_noise")
                context = {name: getattr(found, name) for name in axes}
                rows.append({**row_identity(step, found), **context, **found.metrics})
    for row in rows:
        if row["posterior"] == Ensemble.name:
            row["members"] = " ".join(sorted(r.path.resolve().name for r in (run, *ensemble_with)))
    _keep(run.directory.table(sweep or "evaluation"), rows)
    return rows


def _keep(table: Path, rows: list[dict[str, Any]]) -> None:
    """Replace earlier rows of the same evaluations, but for those made from more rows."""
    made_from, made_before = (_num_rows(found) for found in (rows, read_json_lines(table)))
    poorer = {what for what, number in made_from.items() if made_before.get(what, 0) > number}
    if poorer:
        names = ", ".join(sorted({posterior for _, posterior, *_ in poorer}))
        warnings.warn(f"not kept, as {table} has them from more rows: {names}", stacklevel=3)
    replaced = made_from.keys() - poorer
    added = [row for row in rows if _evaluation(row) in replaced]
    keep_json_lines(table, lambda row: _evaluation(row) not in replaced, added)


def _num_rows(rows: list[dict[str, Any]]) -> dict[tuple[int, str, int, str], int]:
    numbers: dict[tuple[int, str, int, str], int] = {}
    for row in rows:
        what = _evaluation(row)
        numbers[what] = max(numbers.get(what, 0), row["num_rows"])
    return numbers


def _evaluation(row: dict[str, Any]) -> tuple[int, str, int, str]:
    """What is evaluated."""
    return row["step"], row["posterior"], row["num_samples"], row.get("members", "")


def _posteriors(
    run: Run, options: EvaluateOptions, step: int, model: Network, fit_set: EvaluationSet
) -> list[Posterior]:
    ivon_posterior = load_ivon_posterior(run.directory.checkpoints, step, model)
    return tracked_posteriors(
        run.config, model, fit_set, ivon_posterior, options.posteriors or None
    )


def _ensemble(run: Run, model: Network, others: tuple[Run, ...], step: int | None) -> Ensemble:
    """The networks of all runs at `step`, or the newest of each."""
    if len({member.path.resolve() for member in (run, *others)}) <= len(others):
        raise UserError("a run is named twice: an ensemble needs different ones")
    for other in others:
        same_world = asdict(other.config.task) == asdict(run.config.task)
        if not same_world or other.config.task_seed != run.config.task_seed:
            raise UserError(
                f"{other.path} learnt another task than {run.path}: an ensemble needs one task"
            )
    device = next(model.parameters()).device
    return Ensemble.of([model, *(other.model(step, device) for other in others)])
