"""The posteriors that a configuration names, at the present state of training."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.config import RunConfig
from epigrok.evaluation.evaluator import EvaluationSet
from epigrok.model import Network
from epigrok.posteriors import FitData, Posterior, features_of, fit_posterior


def tracked_posteriors(
    config: RunConfig,
    model: Network,
    fit_set: EvaluationSet,
    carried: Posterior | None = None,
    names: tuple[str, ...] | None = None,
) -> list[Posterior]:
    """Fit what `config` tracks, or the posteriors called `names`.

    Args:
        config: The run.
        model: Its network.
        fit_set: Clean training sequences, for posteriors that need to see data.
        carried: What the optimiser learnt, where it carries a posterior.
        names: Overrides the configuration's list.
    """
    data = FitData(model, lambda: _answer_features(model, fit_set))
    wanted = names or config.evaluation.posteriors
    return [fit_posterior(name, data, config, carried) for name in wanted]


def _answer_features(
    model: Network, sequences: EvaluationSet
) -> Iterator[tuple[Float[Tensor, "N D"], Int[Tensor, " N"]]]:
    """Features and answers where the sequences ask something, a bounded number at a time."""
    with torch.no_grad():
        for chunk in sequences.chunks():
            features_BTD = features_of(model, chunk.batch.tokens_BL)
            is_scored = chunk.batch.is_scored_BT
            yield features_BTD[is_scored], chunk.batch.answers_BT[is_scored]
