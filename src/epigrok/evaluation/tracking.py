"""What a run evaluates at one of its steps."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from epigrok.config import RunConfig
from epigrok.evaluation.evaluator import (
    EvaluationRow,
    EvaluationSet,
    evaluate,
    evaluate_oracles,
    evaluation_precision,
)
from epigrok.evaluation.posterior_tracking import tracked_posteriors
from epigrok.model import Network
from epigrok.posteriors import Posterior


@dataclass(frozen=True)
class Evaluation:
    """The rows of one step, by the table that keeps them."""

    step: int
    metrics: list[EvaluationRow]
    """A point of the curve: every tracked posterior on every split."""
    final: list[EvaluationRow] = field(default_factory=list)
    """The same with more weight samples, at the last step."""
    exact: list[EvaluationRow] = field(default_factory=list)
    """The exact predictors, at the first step, because they never change."""

    def tables(self) -> Iterator[tuple[str, list[EvaluationRow]]]:
        """Name and rows of each table that this step adds to."""
        for name in ("metrics", "final", "exact"):
            rows = getattr(self, name)
            if rows:
                yield name, rows


def tracked_evaluation(
    config: RunConfig,
    model: Network,
    sets: dict[str, EvaluationSet],
    carried: Posterior | None,
    step: int,
) -> Evaluation:
    """Evaluate the tracked posteriors; the first step adds `exact`, the last one `final`."""
    settings = config.evaluation
    fit_set = sets[config.task.splits[0].name]
    with evaluation_precision(config, next(model.parameters()).device):
        posteriors = tracked_posteriors(config, model, fit_set, carried)

        def rows_of(chosen: list[Posterior], num_samples: int) -> list[EvaluationRow]:
            return evaluate(model, chosen, sets, num_samples, settings.num_sampled_sequences)

        metrics = rows_of(posteriors, settings.num_samples)
        final: list[EvaluationRow] = []
        if step == config.num_steps:
            final = metrics
            if settings.num_final_samples != settings.num_samples:
                # A posterior with finitely many samples has already used all of them.
                sampled = [p for p in posteriors if p.max_samples is None]
                again = rows_of(sampled, settings.num_final_samples)
                names = {p.name for p in sampled}
                final = [row for row in metrics if row.posterior not in names] + again
        exact = evaluate_oracles(sets) if step == 0 else []
    return Evaluation(step, metrics, final, exact)
