"""The one definition of every metric: predictions and answers in, columns out.

Every metric exists over all scored answers, on the final answer only (suffix `_final`), and per
context length. Counts are whole numbers and sums float64.

Letters: B rows, T answers (context length 1 … T), C classes, M calibration bins.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from epigrok.tasks import Batch
from epigrok.uncertainty import (
    EntropyStream,
    calibration_error,
    log_probabilities,
    reliability_counts,
)

METRICS = (
    "accuracy",
    "nll",
    "ece",
    "brier",
    "total",
    "aleatoric",
    "epistemic",
    "epistemic_corrected",
    "epistemic_se",
)

Columns = dict[str, Float[Tensor, " T"]]


@dataclass(frozen=True)
class Scores:
    """Per-answer quantities of one posterior on one evaluation set."""

    values_BT: dict[str, Float[Tensor, "B T"]]
    """accuracy (0 or 1), nll, brier, total, aleatoric, epistemic, confidence."""
    is_scored_BT: Bool[Tensor, "B T"]
    num_samples: int

    def per_context_length(self) -> Columns:
        """Metrics at each context length; NaN where the split asks nothing."""
        counts = self._reliability()
        return self._columns(self.is_scored_BT, 0) | {"ece": calibration_error(counts)}

    def summary(self) -> dict[str, float]:
        """Metrics over all scored answers, and with suffix `_final` on the last one."""
        counts = self._reliability()
        everything = self._columns(self.is_scored_BT, None)
        everything["ece"] = calibration_error(counts.sum(dim=1))
        final = {name: column[-1] for name, column in self.per_context_length().items()}
        return {name: everything[name].item() for name in METRICS} | {
            f"{name}_final": final[name].item() for name in METRICS
        }

    def _reliability(self) -> Float[Tensor, "3 T M"]:
        return reliability_counts(
            self.values_BT["confidence"], self.values_BT["accuracy"] == 1, self.is_scored_BT
        )

    def _columns(self, is_scored_BT: Tensor, axis: int | None) -> dict[str, Tensor]:
        """Means over rows (axis 0) or over everything (None), with their standard error."""
        count = is_scored_BT.sum() if axis is None else is_scored_BT.sum(dim=0)
        columns = {
            name: values.where(is_scored_BT, 0.0).sum(dim=axis) / count
            for name, values in self.values_BT.items()
            if name != "confidence"
        }
        columns["epistemic_corrected"] = columns["epistemic"] * (
            self.num_samples / max(1, self.num_samples - 1)
        )
        columns["epistemic_se"] = _standard_error(self.values_BT["epistemic"], is_scored_BT, axis)
        return columns


def score(logits: Iterable[Float[Tensor, "B T C"]], batch: Batch) -> Scores:
    """Score the average of several predictions of one batch.

    Args:
        logits: Logits under each posterior sample, in turn; only one is held at a time.
        batch: The rows they belong to.
    """
    stream = EntropyStream()
    log_sum_BT: Tensor | None = None
    for logits_BTC in logits:
        log_probs_BTC = log_probabilities(logits_BTC)
        stream.add(log_probs_BTC)
        log_answer_BT = log_probs_BTC.gather(-1, batch.answers_BT[..., None])[..., 0]
        # In logarithms, so that a confidently wrong prediction has a finite loss.
        log_sum_BT = log_answer_BT if log_sum_BT is None else log_sum_BT.logaddexp(log_answer_BT)
    assert log_sum_BT is not None, "at least one prediction is needed"
    probs_BTC = stream.mean_probs()
    confidence_BT, predicted_BT = probs_BTC.max(dim=-1)
    answer_BT = probs_BTC.gather(-1, batch.answers_BT[..., None])[..., 0]
    parts = stream.decomposition()
    values_BT = {
        "accuracy": (predicted_BT == batch.answers_BT).double(),
        "nll": log(stream.num_samples) - log_sum_BT,
        "brier": probs_BTC.square().sum(dim=-1) - 2.0 * answer_BT + 1.0,
        "total": parts.total,
        "aleatoric": parts.aleatoric,
        "epistemic": parts.epistemic,
        "confidence": confidence_BT.clamp_max(1.0),
    }
    return Scores(values_BT, batch.is_scored_BT, stream.num_samples)


def concatenate(parts: list[Scores]) -> Scores:
    """The scores of several chunks of rows as one."""
    values_BT = {
        name: torch.cat([part.values_BT[name] for part in parts]) for name in parts[0].values_BT
    }
    is_scored_BT = torch.cat([part.is_scored_BT for part in parts])
    return Scores(values_BT, is_scored_BT, parts[0].num_samples)


def _standard_error(values_BT: Tensor, is_scored_BT: Tensor, axis: int | None) -> Tensor:
    """Standard error over rows, which are independent, unlike the answers within one."""
    if axis is None:
        count_B = is_scored_BT.sum(dim=1)
        values_BT = (values_BT.where(is_scored_BT, 0.0).sum(dim=1) / count_B)[:, None]
        is_scored_BT = (count_B > 0)[:, None]
    count = is_scored_BT.sum(dim=0)
    mean = values_BT.where(is_scored_BT, 0.0).sum(dim=0) / count
    squares = (values_BT - mean).square().where(is_scored_BT, 0.0).sum(dim=0)
    error = (squares / (count - 1).clamp_min(1) / count).sqrt()
    return error[0] if axis is None else error
