"""Evaluation of a model: every posterior on every split, as rows of a table.

Letters: B sequences, T answers, D features, C classes, M calibration bins.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.config import RunConfig, Split
from epigrok.config.posterior import ORACLES
from epigrok.errors import UserError
from epigrok.evaluation.scores import (
    OraclePredictions,
    Scores,
    ScoreStream,
    concatenate,
    score,
)
from epigrok.model import Network
from epigrok.posteriors import Facts, Posterior, PosteriorWithFacts, evaluating, sampled_logits
from epigrok.tasks import Batch, InContextFamily, TaskFamily
from epigrok.uncertainty import BayesOracle

SEQUENCES_PER_CHUNK = {"cpu": 512, "cuda": 4096}
"""Sequences that go through the network at a time; bounds the memory of its activations."""


@dataclass(frozen=True)
class EvaluationSet:
    """The fixed sequences of one split, and the exact predictions for them."""

    batch: Batch
    oracle: OraclePredictions | None

    def first(self, num_sequences: int | None) -> "EvaluationSet":
        """The first sequences, or all; tasks take turns, so they stay balanced."""
        return self.chunk(slice(num_sequences))

    def chunk(self, part: slice) -> "EvaluationSet":
        """Some of the sequences."""
        batch = Batch(
            self.batch.tokens_BL[part], self.batch.answers_BT[part], self.batch.is_scored_BT[part]
        )
        if self.oracle is None:
            return EvaluationSet(batch, None)
        oracle = OraclePredictions(
            self.oracle.memorising_BTC[part], self.oracle.generalising_BTC[part]
        )
        return EvaluationSet(batch, oracle)

    def chunks(self) -> Iterator["EvaluationSet"]:
        """All sequences, a bounded number at a time."""
        size = SEQUENCES_PER_CHUNK[self.batch.tokens_BL.device.type]
        for start in range(0, len(self.batch.tokens_BL), size):
            yield self.chunk(slice(start, start + size))


@dataclass(frozen=True)
class EvaluationRow:
    """One posterior on one split."""

    split: str
    posterior: str
    num_samples: int
    num_sequences: int
    summary: dict[str, float]
    per_context_length: dict[str, Float[Tensor, " T"]]
    reliability_3M: Float[Tensor, "3 M"]
    """Predictions, correct predictions and summed confidence per calibration bin."""
    facts: Facts = field(default_factory=dict)
    """Facts of the posterior, such as its prior precision."""

    @classmethod
    def of(
        cls, split: str, posterior: str, scores: Scores, facts: Facts | None = None
    ) -> "EvaluationRow":
        """The row for these `scores`."""
        return cls(
            split=split,
            posterior=posterior,
            num_samples=scores.num_samples,
            num_sequences=len(scores.is_scored_BT),
            summary=scores.summary(),
            per_context_length=scores.per_context_length(),
            reliability_3M=scores.reliability().sum(dim=1),
            facts=facts or {},
        )


@contextmanager
def evaluation_precision(config: RunConfig, device: torch.device) -> Iterator[None]:
    """Multiply float32 matrices in the precision of `config`; on a CPU always in full."""
    if device.type == "cpu":
        yield
        return
    before = torch.get_float32_matmul_precision()
    is_full = config.evaluation.matmul_precision == "float32"
    torch.set_float32_matmul_precision("highest" if is_full else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def evaluation_sets(
    config: RunConfig,
    family: TaskFamily,
    num_examples: int | None = None,
    splits: Sequence[Split] | None = None,
) -> dict[str, EvaluationSet]:
    """The fixed sequences of all or some splits, by default as long as in training."""
    num_sequences = config.evaluation.num_sequences
    num_examples = num_examples or config.task.num_examples
    batches = {
        split.name: family.evaluation_batch(split, num_sequences, num_examples)
        for split in splits or config.task.splits
    }
    return {name: with_oracle(config, family, batch) for name, batch in batches.items()}


def with_oracle(
    config: RunConfig,
    family: TaskFamily,
    batch: Batch,
    noise: float | None = None,
    asked_noise: float | None = None,
) -> EvaluationSet:
    """Sequences with their exact predictions, if the task has exact predictors.

    Args:
        config: The run; its `oracle_noise` is the default.
        family: Its task family.
        batch: The sequences.
        noise: Label noise that the predictors assume for the answers in the context.
        asked_noise: Label noise that they assume for the asked answer, by default the same.
    """
    noise = config.evaluation.oracle_noise if noise is None else noise
    if not noise or not isinstance(family, InContextFamily):
        return EvaluationSet(batch, None)
    considered = family.hypotheses()
    inputs_BT, shown_BT = family.observed(batch)

    def log_probs(answers_AN: Tensor) -> Tensor:
        oracle = BayesOracle(answers_AN, config.task.vocabulary_size, noise, asked_noise)
        return oracle.log_probs(inputs_BT, shown_BT)

    memorising = log_probs(considered.answers_AN[considered.is_trained_A])
    return EvaluationSet(batch, OraclePredictions(memorising, log_probs(considered.answers_AN)))


def evaluate(
    model: Network,
    posteriors: list[Posterior],
    sets: dict[str, EvaluationSet],
    num_samples: int,
    num_sampled_sequences: int | None = None,
) -> list[EvaluationRow]:
    """Score every posterior on every split; the model stays unchanged.

    Args:
        model: The network whose weights the posteriors are about.
        posteriors: What to evaluate.
        sets: The sequences of each split.
        num_samples: Weight samples per posterior.
        num_sampled_sequences: Sequences for sampled posteriors, by default all.
    """
    rows = []
    for posterior in posteriors:
        used = sequences_used(posterior, sets, num_sampled_sequences)
        scores = score_posterior(model, posterior, used, num_samples)
        facts = posterior.facts if isinstance(posterior, PosteriorWithFacts) else {}
        rows += [EvaluationRow.of(split, posterior.name, scores[split], facts) for split in sets]
    return rows


def sequences_used(
    posterior: Posterior, sets: dict[str, EvaluationSet], num_sampled_sequences: int | None
) -> dict[str, EvaluationSet]:
    """The sequences for `posterior`: fewer if it is sampled, because each sample costs a pass."""
    is_sampled = posterior.max_samples != 1
    num_sequences = num_sampled_sequences if is_sampled else None
    return {split: whole.first(num_sequences) for split, whole in sets.items()}


def evaluate_oracles(sets: dict[str, EvaluationSet]) -> list[EvaluationRow]:
    """Score the exact predictors themselves; they do not depend on the model."""
    return [
        EvaluationRow.of(split, name, scores)
        for split, evaluation_set in sets.items()
        for name, scores in oracle_scores(evaluation_set).items()
    ]


def oracle_scores(evaluation_set: EvaluationSet) -> dict[str, Scores]:
    """Scores of the two exact predictors by name; empty if the task has none."""
    batch, oracle = evaluation_set.batch, evaluation_set.oracle
    if oracle is None:
        return {}
    predictions = (oracle.memorising_BTC, oracle.generalising_BTC)
    return {
        name: score([log_probs], batch, oracle) for name, log_probs in zip(ORACLES, predictions)
    }


def score_posterior(
    model: Network, posterior: Posterior, sets: dict[str, EvaluationSet], num_samples: int
) -> dict[str, Scores]:
    """Score the average prediction under samples of `posterior`, on every split.

    Each sample is drawn once and predicts all sequences of all splits before the next one.
    """
    # A posterior with finitely many samples uses all of them: an ensemble has no smaller part.
    num_samples = posterior.max_samples or num_samples
    # All splits at once: a GPU prefers few large batches.
    chunks = list(_joined(list(sets.values())).chunks())
    streams = [ScoreStream(chunk.batch, chunk.oracle) for chunk in chunks]
    tokens = [chunk.batch.tokens_BL for chunk in chunks]
    with evaluating(model):
        for logits in sampled_logits(model, posterior, tokens, num_samples):
            for stream, logits_BTC in zip(streams, logits):
                stream.add(logits_BTC)
    scores, start = concatenate([stream.scores() for stream in streams]), 0
    if not scores.values_BT["confidence"].isfinite().all():
        raise UserError(
            f"predictions under the posterior {posterior.name!r} are not finite: the weights, or "
            "the spread around them, have become too large"
        )
    scores_of_split = {}
    for split, evaluation_set in sets.items():
        end = start + len(evaluation_set.batch.tokens_BL)
        scores_of_split[split] = scores.rows(slice(start, end))
        start = end
    return scores_of_split


def _joined(sets: list[EvaluationSet]) -> EvaluationSet:
    """Several evaluation sets as one."""
    batches, oracles = [each.batch for each in sets], [each.oracle for each in sets]
    batch = Batch(
        torch.cat([batch.tokens_BL for batch in batches]),
        torch.cat([batch.answers_BT for batch in batches]),
        torch.cat([batch.is_scored_BT for batch in batches]),
    )
    known = [oracle for oracle in oracles if oracle is not None]
    assert len(known) in (0, len(oracles)), "exact predictions of some sets, but not of all"
    if not known:
        return EvaluationSet(batch, None)
    oracle = OraclePredictions(
        torch.cat([oracle.memorising_BTC for oracle in known]),
        torch.cat([oracle.generalising_BTC for oracle in known]),
    )
    return EvaluationSet(batch, oracle)
