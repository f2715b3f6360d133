"""What a run evaluates at one of its steps."""

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
from epigrok.posteriors import DiagonalGaussian


def tracked_rows(
    config: RunConfig,
    model: Network,
    sets: dict[str, EvaluationSet],
    ivon_posterior: DiagonalGaussian | None,
    step: int,
) -> tuple[list[EvaluationRow], list[EvaluationRow]]:
    """Rows of the tracked posteriors, and what the first and the last step add to them.

    The exact predictors never change, so the first step is enough; the last one is evaluated again
    with more samples.
    """
    settings = config.evaluation
    with evaluation_precision(config, next(model.parameters()).device):
        posteriors = tracked_posteriors(config, model, sets["id_train"], ivon_posterior)

        def rows_of(num_samples: int) -> list[EvaluationRow]:
            return evaluate(model, posteriors, sets, num_samples, settings.num_sampled_rows)

        rows, added = rows_of(settings.num_samples), []
        if step == 0:
            added += evaluate_oracles(sets)
        if step == config.num_steps and settings.num_final_samples != settings.num_samples:
            is_sampled = {p.name: p.max_samples is None for p in posteriors}
            final = rows_of(settings.num_final_samples)
            added += [row for row in final if is_sampled[row.posterior]]
        return rows, added
