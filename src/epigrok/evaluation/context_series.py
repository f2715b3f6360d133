"""Series of contexts: how a fixed model's predictions depend on context length and noise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan

from epigrok.config import ContextSeries, RunConfig
from epigrok.config.posterior import BELIEVES_CLEAN
from epigrok.evaluation.evaluator import (
    EvaluationSet,
    evaluation_sets,
    oracle_scores,
    score_posterior,
    sequences_used,
    with_oracle,
)
from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.evaluation.scores import Scores
from epigrok.model import Network
from epigrok.posteriors import Posterior
from epigrok.tasks import TaskFamily, with_context_noise

NOISE_LEVELS = tuple(round(0.1 * k, 1) for k in range(11))


@dataclass(frozen=True)
class ContextRow:
    """One posterior on one split under one kind of context."""

    split: str
    posterior: str
    num_samples: int
    num_sequences: int
    context_length: int
    context_noise: float
    metrics: dict[str, float]
    """Metrics of the answer asked with this context."""


ScoreSets = Callable[[dict[str, EvaluationSet]], Iterator[tuple[str, dict[str, Scores]]]]
"""Evaluation sets by split -> each posterior in turn, with its scores by split."""


def series_rows(
    name: ContextSeries,
    config: RunConfig,
    model: Network,
    family: TaskFamily,
    posteriors: list[Posterior],
    num_samples: int,
) -> Iterator[ContextRow]:
    """Rows of one series: every posterior and exact predictor on every split.

    The rows come as they are computed, so the caller can stop in between.
    """

    def score_sets(sets: dict[str, EvaluationSet]) -> Iterator[tuple[str, dict[str, Scores]]]:
        for posterior in posteriors:
            used = sequences_used(posterior, sets, config.evaluation.num_sampled_sequences)
            yield posterior.name, score_posterior(model, posterior, used, num_samples)

    if name == "context-length":
        yield from context_length_series(config, family, score_sets)
    else:
        yield from context_noise_series(config, family, score_sets)


def context_length_series(
    config: RunConfig, family: TaskFamily, score_sets: ScoreSets
) -> Iterator[ContextRow]:
    """Context lengths from 1, the query alone, to that of training.

    Where a split asks every answer of a sequence, one pass gives all lengths, because the model is
    causal and its positions are relative. Where it asks only the last, each length needs its own
    sequences.
    """
    longest = config.task.num_examples
    sets = evaluation_sets(config, family)
    one_pass = {name: found for name, found in sets.items() if found.batch.is_scored_BT.all()}
    for posterior, by_split in _with_oracles(score_sets, one_pass):
        for split, scores in by_split.items():
            yield from _rows(split, posterior, scores, range(1, longest + 1))
    others = [split for split in config.task.splits if split.name not in one_pass]
    for length in range(1, longest + 1) if others else ():
        asked = evaluation_sets(config, family, length, others)
        for posterior, by_split in _with_oracles(score_sets, asked):
            for split, scores in by_split.items():
                yield from _rows(split, posterior, scores, [length])


def context_noise_series(
    config: RunConfig, family: TaskFamily, score_sets: ScoreSets
) -> Iterator[ContextRow]:
    """Noise levels from 0 to 1, all sharing their random numbers, at full context length.

    The exact predictors come twice: they know the noise level, or assume a clean context. Levels
    are evaluated one at a time, because all predictions at once would not fit a small GPU.
    """
    longest, slight = config.task.num_examples, config.evaluation.oracle_noise
    clean = {
        split.name: family.evaluation_batch(split, config.evaluation.num_sequences, longest)
        for split in config.task.splits
    }
    for noise in NOISE_LEVELS:
        batches = {
            split: with_context_noise(batch, noise, config.task.vocabulary_size, config.task_seed)
            for split, batch in clean.items()
        }
        # Oracle noise 0 leaves out the exact predictors, at every level.
        known = max(noise, slight) if slight else 0.0
        # Noise replaces only context answers; the asked answer stays clean.
        sets = {
            split: with_oracle(config, family, batch, known, slight or None)
            for split, batch in batches.items()
        }
        for posterior, by_split in _with_oracles(score_sets, sets):
            for split, scores in by_split.items():
                yield from _rows(split, posterior, scores, [longest], noise)
        for split, batch in batches.items() if noise > slight > 0 else ():
            for oracle, scores in oracle_scores(with_oracle(config, family, batch)).items():
                yield from _rows(split, oracle + BELIEVES_CLEAN, scores, [longest], noise)


def _with_oracles(
    score_sets: ScoreSets, sets: dict[str, EvaluationSet]
) -> Iterator[tuple[str, dict[str, Scores]]]:
    if not sets:
        return
    yield from score_sets(sets)
    exact: dict[str, dict[str, Scores]] = {}
    for split, evaluation_set in sets.items():
        for oracle, scores in oracle_scores(evaluation_set).items():
            exact.setdefault(oracle, {})[split] = scores
    yield from exact.items()


def _rows(
    split: str,
    posterior: str,
    scores: Scores,
    context_lengths: range | list[int],
    context_noise: float = 0.0,
) -> list[ContextRow]:
    """One row for each of `context_lengths`, from the last answers."""
    columns = {name: values.tolist() for name, values in scores.per_context_length().items()}
    first = scores.is_scored_BT.shape[1] - len(context_lengths)
    return [
        ContextRow(
            split,
            posterior,
            scores.num_samples,
            len(scores.is_scored_BT),
            length,
            context_noise,
            {n: columns[n][first + k] for n in METRIC_NAMES if not isnan(columns[n][first + k])},
        )
        for k, length in enumerate(context_lengths)
    ]
