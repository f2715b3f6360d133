"""A posterior of your own, in one file: Monte Carlo dropout on what the output head sees.

    epigrok train icl-tiny --evaluation.posteriors point feature-dropout:0.1 \
        --plugin examples/own_posterior.py --out runs/feature-dropout

A posterior has a name, a number of distinct samples and a way to predict with sample `index`, which
must depend on nothing but the posterior and the index. One that leaves everything before the output
head as it is offers `head_logits`, and features are then computed once for all samples.

Letters: B sequences, T answers, D features, C classes.
"""

from dataclasses import dataclass

from torch import Tensor

import epigrok
from epigrok.columns import Column
from epigrok.config import PosteriorName
from epigrok.config.checks import require
from epigrok.posteriors import FitRequest, Head, HeadSample
from epigrok.random_streams import stream_key, uniform


@dataclass(frozen=True)
class DropoutOnFeatures:
    """Heads in which each feature is missing with probability `rate`, the others scaled up."""

    head: Head
    rate: float
    name: str
    max_samples: int | None = None

    @property
    def facts(self) -> dict[str, float]:
        """Columns of the tables beside the metrics."""
        return {"dropout_rate": self.rate}

    def sample(self, index: int) -> HeadSample:
        """The head of sample `index`."""
        weight_CD = self.head.weight_CD
        noise_D = uniform(stream_key(0, "dropout"), weight_CD.shape[1:], index, weight_CD.device)
        is_kept_D = (noise_D >= self.rate).to(weight_CD.dtype)
        return HeadSample(self.head.with_matrix(weight_CD * is_kept_D / (1.0 - self.rate)))

    def head_logits(self, features_BTD: Tensor, index: int) -> Tensor:
        """Logits of sample `index`."""
        return self.sample(index).head.logits(features_BTD)


def rate_of(name: PosteriorName) -> float:
    """The argument: a share of features to drop."""
    rate = 0.1 if not name.argument else name.number
    require(rate is not None and 0.0 < rate < 1.0, f"{name.text!r}: the rate must lie in (0, 1)")
    return rate or 0.0


@epigrok.register_posterior(
    "feature-dropout",
    role="control",
    read_argument=rate_of,
    facts=(Column("dropout_rate", "number", "share of features that are dropped"),),
)
def fit_dropout(request: FitRequest) -> DropoutOnFeatures:
    """Around the run's head."""
    return DropoutOnFeatures(request.data.head, request.value, request.name.text)
