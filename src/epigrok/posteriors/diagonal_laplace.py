r"""Last-layer Laplace with independent weights, for vocabularies of any size.

Of the Gauss-Newton matrix it keeps the diagonal,

$$ H_{cd} = \sum_n p_{nc} (1 - p_{nc})\, \phi_{nd}^2, $$

which takes as much memory as the head itself. Products are in single precision, since the sums have
positive terms only; samples are drawn a block of classes at a time.

Letters: N answers, D features (with the one for a bias), C classes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.posteriors.head import Head
from epigrok.posteriors.head_curvature import (
    Evidence,
    LabelledFeatures,
    PriorPrecision,
    require_answers,
    require_head,
)
from epigrok.posteriors.head_gaussian import HeadGaussian
from epigrok.posteriors.protocol import elements_per_block
from epigrok.random_streams import normal, stream_key

LOGITS_PER_BLOCK = 1 << 22
"""Logits of a fit at a time; bounds memory, changes no number but for rounding."""


@dataclass(frozen=True, repr=False)
class DiagonalLaplace(HeadGaussian):
    """A Gaussian over the head whose weights are independent."""

    head: Head
    precision_CD: Float[Tensor, "C D"]
    prior_precision: float
    log_evidence: float
    num_answers: int
    name: str = "laplace-diagonal"
    seed: int = 0
    max_samples: int | None = None

    @classmethod
    def from_answers(
        cls, head: Head, answers: Iterable[LabelledFeatures], prior: PriorPrecision
    ) -> "DiagonalLaplace":
        """The posterior from features and answers."""
        curvature_CD, negative_log_likelihood, num_answers = diagonal_curvature(head, answers)
        # Without a copy in double precision, which would be the largest thing in memory.
        norm = torch.linalg.vector_norm(head.matrix, dtype=torch.float64).item()
        evidence = Evidence(negative_log_likelihood, curvature_CD, norm**2)
        prior_precision = evidence.prior_precision(prior)
        log_evidence = evidence.log_at(prior_precision)
        precision_CD = curvature_CD.add_(prior_precision)
        return cls(head, precision_CD, prior_precision, log_evidence, num_answers)

    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Head weights of sample `index`."""
        return torch.cat([rows for _, rows in self._blocks(index)])

    def head_logits(
        self, features: Float[Tensor, "*positions D"], index: int
    ) -> Float[Tensor, "*positions C"]:
        """Logits under the head of sample `index`, which is never there as a whole."""
        extended = self.head.extended(features)
        logits = features.new_empty(*features.shape[:-1], len(self.precision_CD))
        for classes, rows in self._blocks(index):
            logits[..., classes] = extended @ rows.T.to(features.dtype)
        return logits

    def _blocks(self, index: int) -> Iterator[tuple[slice, Tensor]]:
        num_classes, width = self.precision_CD.shape
        key = stream_key(self.seed, "laplace")
        size = max(1, elements_per_block(self.precision_CD.device) // width)
        for first in range(0, num_classes, size):
            classes = slice(first, min(first + size, num_classes))
            mean = self.head.rows(classes).matrix
            noise = normal(key, tuple(mean.shape), index, mean.device, start=first * width)
            yield classes, mean + noise * self.precision_CD[classes].rsqrt()


def diagonal_curvature(
    head: Head, answers: Iterable[LabelledFeatures]
) -> tuple[Float[Tensor, "C D"], float, int]:
    """The diagonal, the summed loss and the number of answers, streamed over chunks of answers."""
    require_head(head)
    curvature_CD = torch.zeros_like(head.matrix)
    negative_log_likelihood, num_answers = 0.0, 0
    for features, answers_N in answers:
        own_NC = features.new_empty(len(features), len(curvature_CD))
        size = max(1, LOGITS_PER_BLOCK // len(curvature_CD))
        for first in range(0, len(features), size):
            rows = slice(first, first + size)
            own_NC[rows], loss = _variances_and_loss(head.logits(features[rows]), answers_N[rows])
            negative_log_likelihood += loss
        curvature_CD.addmm_(own_NC.T, head.extended(features).square())
        num_answers += len(features)
    require_answers(num_answers, curvature_CD)
    return curvature_CD, negative_log_likelihood, num_answers


def _variances_and_loss(
    logits_NC: Float[Tensor, "N C"], answers_N: Int[Tensor, " N"]
) -> tuple[Float[Tensor, "N C"], float]:
    """p(1 - p) of every class and the summed loss, with the digits of a certain prediction.

    1 - p of the likeliest class is the sum of the others, not a difference from one.
    """
    shifted_NC = logits_NC - logits_NC.amax(dim=-1, keepdim=True)
    top_N1 = shifted_NC.argmax(dim=-1, keepdim=True)
    answered_N = shifted_NC.gather(1, answers_N[:, None])[:, 0]
    odds_NC = shifted_NC.exp_().scatter_(1, top_N1, 0.0)
    others_N1 = odds_NC.sum(dim=-1, keepdim=True)
    loss = (torch.log1p(others_N1[:, 0]) - answered_N).double().sum().item()
    probs_NC = odds_NC.div_(1.0 + others_N1)
    variances_NC = probs_NC.sub_(probs_NC.square())
    return variances_NC.scatter_(1, top_N1, others_N1 / (1.0 + others_N1).square()), loss
