"""Evaluation of a model in training: every posterior on every split, as rows of a table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from epigrok.config import RunConfig
from epigrok.evaluation.scores import Columns, Scores, concatenate, score
from epigrok.model import Network
from epigrok.posteriors import Posterior, sampled_logits
from epigrok.tasks import Batch, TaskFamily

ROWS_PER_CHUNK = {"cpu": 512, "cuda": 4096}
"""Rows evaluated at a time; bounds memory, changes no number."""


@dataclass(frozen=True)
class EvaluationRow:
    """One posterior on one split."""

    split: str
    posterior: str
    num_samples: int
    num_rows: int
    summary: dict[str, float]
    per_context_length: Columns


def evaluation_sets(config: RunConfig, family: TaskFamily) -> dict[str, Batch]:
    """The fixed rows of every split."""
    num_rows, num_examples = config.evaluation.num_rows, config.task.num_examples
    return {
        split: family.evaluation_batch(split, num_rows, num_examples) for split in family.splits
    }


def evaluate(
    model: Network,
    posteriors: Iterable[Posterior],
    sets: dict[str, Batch],
    num_samples: int,
) -> list[EvaluationRow]:
    """Score every posterior on every split; the model is left as it was."""
    rows = []
    for posterior in posteriors:
        for split, batch in sets.items():
            scores = score_posterior(model, posterior, batch, num_samples)
            rows.append(
                EvaluationRow(
                    split=split,
                    posterior=posterior.name,
                    num_samples=scores.num_samples,
                    num_rows=len(batch.tokens_BL),
                    summary=scores.summary(),
                    per_context_length=scores.per_context_length(),
                )
            )
    return rows


def score_posterior(model: Network, posterior: Posterior, batch: Batch, num_samples: int) -> Scores:
    """Score the average prediction under samples of `posterior`."""
    num_samples = min(num_samples, posterior.max_samples or num_samples)
    size = ROWS_PER_CHUNK[batch.tokens_BL.device.type]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            parts = [
                score(sampled_logits(model, posterior, chunk.tokens_BL, num_samples), chunk)
                for chunk in _chunks(batch, size)
            ]
    finally:
        model.train(was_training)
    return concatenate(parts)


def _chunks(batch: Batch, size: int) -> Iterator[Batch]:
    for start in range(0, len(batch.tokens_BL), size):
        rows = slice(start, start + size)
        yield Batch(batch.tokens_BL[rows], batch.answers_BT[rows], batch.is_scored_BT[rows])
