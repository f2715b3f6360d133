"""Fit the posteriors that a configuration names to the present weights."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.config import RunConfig
from epigrok.evaluation.evaluator import EvaluationSet
from epigrok.model import Network
from epigrok.posteriors import FitData, Posterior, features_of, fit_posterior
from epigrok.tasks import TaskFamily


def tracked_posteriors(
    config: RunConfig,
    model: Network,
    fit_set: EvaluationSet,
    carried: Posterior | None = None,
    names: tuple[str, ...] | None = None,
) -> list[Posterior]:
    """Fit the posteriors that `config` tracks, or those called `names`.

    Args:
        config: The run.
        model: Its network.
        fit_set: Clean training sequences, for posteriors that need to see data.
        carried: The posterior that the optimiser carries, if it does.
        names: Replaces the configuration's list.
    """
    data = FitData(model, lambda: _answer_features(model, fit_set))
    wanted = names or config.evaluation.posteriors
    return [fit_posterior(name, data, config, carried) for name in wanted]


def fitted_posteriors(
    config: RunConfig,
    model: Network,
    family: TaskFamily,
    carried: Posterior | None = None,
    names: tuple[str, ...] | None = None,
) -> list[Posterior]:
    """The same, fitted to the sequences that the run itself fits to: fewer make a wider one."""
    task, number = config.task, config.evaluation.num_sequences
    clean = family.evaluation_batch(task.splits[0], number, task.num_examples)
    return tracked_posteriors(config, model, EvaluationSet(clean, None), carried, names)


def _answer_features(
    model: Network, sequences: EvaluationSet
) -> Iterator[tuple[Float[Tensor, "N D"], Int[Tensor, " N"]]]:
    """Features and answers at scored positions, a bounded number of sequences at a time."""
    with torch.no_grad():
        for chunk in sequences.chunks():
            features_BTD = features_of(model, chunk.batch.tokens_BL)
            is_scored = chunk.batch.is_scored_BT
            yield features_BTD[is_scored], chunk.batch.answers_BT[is_scored]
