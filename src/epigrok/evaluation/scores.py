"""The one definition of every metric: predictions and answers in, columns out.

Every metric exists over all scored answers, on the final answer only (suffix `_final`), and per
context length. Counts are whole numbers and sums float64.

Letters: B sequences, T answers (context length 1 … T), C classes, M calibration bins.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import isnan, log

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from epigrok.evaluation.schema import FINAL_ANSWER, METRIC_NAMES
from epigrok.tasks import Batch
from epigrok.uncertainty import (
    EntropyStream,
    calibration_error,
    few_samples_correction,
    log_probabilities,
    relative_position,
    reliability_counts,
    symmetric_divergence,
)

_WITH_STANDARD_ERROR = ("total", "aleatoric", "epistemic")
_SAME_PREDICTION = 1e-9
"""Distance in nats below which the exact predictors agree, so no position lies between them."""


@dataclass(frozen=True)
class OraclePredictions:
    """Exact predictions of one evaluation set, as log-probabilities."""

    memorising_BTC: Float[Tensor, "B T C"]
    generalising_BTC: Float[Tensor, "B T C"]


@dataclass(frozen=True)
class Scores:
    """Per-answer quantities of one posterior on one evaluation set."""

    values_BT: dict[str, Float[Tensor, "B T"]]
    """accuracy (0 or 1), confidence, nll, brier, uncertainties, divergences from the oracles."""
    is_scored_BT: Bool[Tensor, "B T"]
    num_samples: int

    def rows(self, part: slice) -> "Scores":
        """The scores of some of the sequences."""
        values_BT = {name: values[part] for name, values in self.values_BT.items()}
        return Scores(values_BT, self.is_scored_BT[part], self.num_samples)

    def per_context_length(self) -> dict[str, Float[Tensor, " T"]]:
        """Metrics at each context length; NaN where the split asks nothing."""
        return dict(self._by_length)

    def summary(self) -> dict[str, float]:
        """Metrics over all scored answers, and with suffix `_final` on the last one.

        A metric that does not exist for this task is left out.
        """
        ece = calibration_error(self.reliability().sum(dim=1))
        everything = self._metrics(
            self._means(axis=None), ece, self._standard_errors(by_length=False)
        )
        columns = {name: everything[name] for name in METRIC_NAMES}
        columns |= {name + FINAL_ANSWER: self._by_length[name][-1] for name in METRIC_NAMES}
        # All at once, because the host waits for the device whenever it reads a number.
        values = torch.stack(list(columns.values())).tolist()
        return {name: value for name, value in zip(columns, values) if not isnan(value)}

    def reliability(self) -> Float[Tensor, "3 T M"]:
        """Predictions, correct predictions and summed confidence per context length and bin."""
        return self._reliability

    @cached_property
    def _reliability(self) -> Float[Tensor, "3 T M"]:
        return reliability_counts(
            self.values_BT["confidence"], self.values_BT["accuracy"] == 1, self.is_scored_BT
        )

    @cached_property
    def _by_length(self) -> dict[str, Float[Tensor, " T"]]:
        ece = calibration_error(self._reliability)
        return self._metrics(self._means(axis=0), ece, self._standard_errors(by_length=True))

    def _metrics(
        self, means: dict[str, Tensor], ece: Tensor, standard_errors: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        nothing = torch.full_like(ece, torch.nan)
        to_memoriser = means.get("kl_memorising", nothing)
        to_generaliser = means.get("kl_generalising", nothing)
        between = means.get("kl_between", nothing)
        return {
            **{name: means[name] for name in METRIC_NAMES if name in means},
            "ece": ece,
            "epistemic_corrected": means["epistemic"] * few_samples_correction(self.num_samples),
            **standard_errors,
            "kl_memorising": to_memoriser,
            "kl_generalising": to_generaliser,
            "relative_position": torch.where(
                between > _SAME_PREDICTION,
                relative_position(to_generaliser, to_memoriser, between),
                nothing,
            ),
        }

    def _means(self, axis: int | None) -> dict[str, Tensor]:
        count = self.is_scored_BT.sum(dim=axis)
        return {
            name: values.where(self.is_scored_BT, 0.0).sum(dim=axis) / count
            for name, values in self.values_BT.items()
        }

    def _standard_errors(self, by_length: bool) -> dict[str, Tensor]:
        return {
            f"{name}_se": self._standard_error(name, by_length) for name in _WITH_STANDARD_ERROR
        }

    def _standard_error(self, name: str, by_length: bool) -> Tensor:
        """Standard error over sequences; NaN for a single one.

        Sequences are independent given their tasks, which several share. The answers within a
        sequence are not, so their mean counts once.
        """
        values_BT, is_scored_BT = self.values_BT[name], self.is_scored_BT
        if not by_length:
            count_B = is_scored_BT.sum(dim=1, keepdim=True)
            values_BT = values_BT.where(is_scored_BT, 0.0).sum(dim=1, keepdim=True) / count_B
            is_scored_BT = count_B > 0
        count_T = is_scored_BT.sum(dim=0)
        mean_T = values_BT.where(is_scored_BT, 0.0).sum(dim=0) / count_T
        squares_T = (values_BT - mean_T).square().where(is_scored_BT, 0.0).sum(dim=0)
        error_T = (squares_T / (count_T - 1) / count_T).sqrt()
        return error_T if by_length else error_T[0]


class ScoreStream:
    """Scores the average prediction for one batch, adding one sample at a time."""

    def __init__(self, batch: Batch, oracle: OraclePredictions | None = None) -> None:
        self._batch, self._oracle = batch, oracle
        self._entropies = EntropyStream()
        self._log_sum_BT = torch.full_like(batch.answers_BT, -torch.inf, dtype=torch.float64)

    def add(self, logits_BTC: Float[Tensor, "B T C"]) -> None:
        """Add the prediction of one more sample."""
        log_probs_BTC = log_probabilities(logits_BTC)
        self._entropies.add(log_probs_BTC)
        log_answer_BT = log_probs_BTC.gather(-1, self._batch.answers_BT[..., None])[..., 0]
        # In logarithms, so that a confidently wrong prediction has a finite loss.
        self._log_sum_BT = self._log_sum_BT.logaddexp(log_answer_BT)

    def scores(self) -> Scores:
        """The scores of the average of all predictions so far."""
        batch, stream = self._batch, self._entropies
        probs_BTC = stream.mean_probs()
        confidence_BT, predicted_BT = probs_BTC.max(dim=-1)
        answer_BT = probs_BTC.gather(-1, batch.answers_BT[..., None])[..., 0]
        parts = stream.decomposition()
        values_BT = {
            "accuracy": (predicted_BT == batch.answers_BT).double(),
            "confidence": confidence_BT.clamp_max(1.0),
            "nll": log(stream.num_samples) - self._log_sum_BT,
            "brier": probs_BTC.square().sum(dim=-1) - 2.0 * answer_BT + 1.0,
            "total": parts.total,
            "aleatoric": parts.aleatoric,
            "epistemic": parts.epistemic,
        }
        if self._oracle is not None:
            values_BT |= _divergences(stream.log_mean_probs(), self._oracle)
        return Scores(values_BT, batch.is_scored_BT, stream.num_samples)


def score(
    logits: Iterable[Float[Tensor, "B T C"]],
    batch: Batch,
    oracle: OraclePredictions | None = None,
) -> Scores:
    """Score the average of several predictions of one batch.

    Args:
        logits: Logits under each posterior sample, in turn; only one is held at a time.
        batch: The sequences they predict.
        oracle: Exact predictions to measure the distance from.
    """
    stream = ScoreStream(batch, oracle)
    for logits_BTC in logits:
        stream.add(logits_BTC)
    return stream.scores()


def concatenate(parts: list[Scores]) -> Scores:
    """The scores of several chunks of sequences as one."""
    values_BT = {
        name: torch.cat([part.values_BT[name] for part in parts]) for name in parts[0].values_BT
    }
    is_scored_BT = torch.cat([part.is_scored_BT for part in parts])
    return Scores(values_BT, is_scored_BT, parts[0].num_samples)


def _divergences(log_probs_BTC: Tensor, oracle: OraclePredictions) -> dict[str, Tensor]:
    memorising, generalising = oracle.memorising_BTC, oracle.generalising_BTC
    return {
        "kl_memorising": symmetric_divergence(log_probs_BTC, memorising),
        "kl_generalising": symmetric_divergence(log_probs_BTC, generalising),
        "kl_between": symmetric_divergence(memorising, generalising),
    }
