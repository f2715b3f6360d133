r"""Last-layer Laplace: a Gaussian over the output head, from the curvature at its trained value.

The posterior precision is H + δI with the Gauss-Newton matrix H ≈ B ⊗ A of `head_curvature` and the
prior precision δ. In the eigenbases of B and A it is diagonal: λ_B λ_Aᵀ + δ. Samples replace
the *head* alone; an embedding tied to it does not change.

Letters: N answers, D features, C classes, B sequences, T answers in a sequence.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from epigrok.columns import Column
from epigrok.config import OptimiserConfig, PosteriorName
from epigrok.config.checks import require
from epigrok.posteriors.head import Head
from epigrok.posteriors.head_curvature import (
    Evidence,
    HeadCurvature,
    LabelledFeatures,
    PriorPrecision,
    head_curvature,
)
from epigrok.posteriors.head_gaussian import HeadGaussian, HeadSample
from epigrok.posteriors.kinds import (
    POSTERIOR_SEED,
    FitRequest,
    positive_number,
    register_posterior,
)
from epigrok.posteriors.protocol import Facts, save_posterior
from epigrok.random_streams import normal, stream_key


@dataclass(frozen=True, repr=False)
class LastLayerLaplace(HeadGaussian):
    """The Kronecker-factored posterior, in the eigenbases of its factors."""

    head: Head
    class_basis_CC: Float[Tensor, "C C"]
    feature_basis_DD: Float[Tensor, "D D"]
    precision_CD: Float[Tensor, "C D"]
    """Posterior precision of each pair of eigenvectors."""
    prior_precision: float
    log_evidence: float
    num_answers: int
    name: str = "laplace"
    seed: int = 0
    max_samples: int | None = None

    @classmethod
    def from_answers(
        cls, head: Head, answers: Iterable[LabelledFeatures], prior: PriorPrecision
    ) -> "LastLayerLaplace":
        """The posterior from features and the answers they should give."""
        return cls.from_curvature(head_curvature(head, answers), prior)

    @classmethod
    def from_curvature(
        cls,
        curvature: HeadCurvature,
        prior: PriorPrecision,
        name: str = "laplace",
        seed: int = 0,
    ) -> "LastLayerLaplace":
        """The posterior for a given prior precision, or for the one of largest evidence."""
        class_values_C, class_basis_CC = curvature.class_eigen
        feature_values_D, feature_basis_DD = curvature.feature_eigen
        values_CD = class_values_C[:, None] * feature_values_D
        squared_norm = curvature.head.matrix.double().square().sum().item()
        evidence = Evidence(curvature.negative_log_likelihood, values_CD, squared_norm)
        prior_precision = evidence.prior_precision(prior)
        return cls(
            curvature.head,
            class_basis_CC,
            feature_basis_DD,
            values_CD + prior_precision,
            prior_precision,
            evidence.log_at(prior_precision),
            curvature.num_answers,
            name,
            seed,
        )

    @cached_property
    def weight_CD(self) -> Float[Tensor, "C D"]:
        """The mean, with the bias as last column."""
        return self.head.matrix.double()

    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Head weights of sample `index`.

        It uses the symmetric square root of the covariance, which does not depend on the choice of
        degenerate eigenvectors, so that nearby posteriors have nearby samples.
        """
        key = stream_key(self.seed, "laplace")
        shape = (self.weight_CD.shape[0], self.weight_CD.shape[1])
        noise_CD = normal(key, shape, index, self.weight_CD.device).double()
        return self.weight_CD + self.scaled_by_covariance_root(noise_CD)

    def scaled_by_covariance_root(self, noise_CD: Float[Tensor, "C D"]) -> Float[Tensor, "C D"]:
        """Turn standard normal noise into noise with the posterior's covariance."""
        rotated_CD = self.class_basis_CC.T @ noise_CD @ self.feature_basis_DD
        scaled_CD = rotated_CD * self.precision_CD.rsqrt()
        return self.class_basis_CC @ scaled_CD @ self.feature_basis_DD.T

    def logit_variance(self, features: Float[Tensor, "*N D"]) -> Float[Tensor, "*N C"]:
        """Variance of each logit at given features."""
        squared = (self.head.extended(features.double()) @ self.feature_basis_DD).square()
        return squared @ self.precision_CD.reciprocal().T @ self.class_basis_CC.square().T


@dataclass(frozen=True)
class ProbitLaplace:
    """Closed-form prediction of a Laplace posterior: logits damped by their own variance.

    softmax(f_c / √(1 + π/8 v_c)), with mean f and variance v of each logit (MacKay 1992).
    """

    posterior: LastLayerLaplace
    name: str = "laplace-probit"
    max_samples: int | None = 1
    save = save_posterior

    @property
    def facts(self) -> Facts:
        """The facts of its Laplace posterior."""
        return self.posterior.facts

    @property
    def head(self) -> Head:
        """The head at its mean."""
        return self.posterior.head

    def sample(self, index: int) -> HeadSample:
        """The mean weights: the damping happens in `head_logits`."""
        del index
        return HeadSample(self.posterior.head)

    def head_logits(
        self, features: Float[Tensor, "*positions D"], index: int
    ) -> Float[Tensor, "*positions C"]:
        """Damped logits."""
        del index
        extended = self.posterior.head.extended(features.double())
        mean = functional.linear(extended, self.posterior.weight_CD)
        variance = self.posterior.logit_variance(features)
        return mean / (1.0 + torch.pi / 8.0 * variance).sqrt()

    def __repr__(self) -> str:
        return f"ProbitLaplace({self.posterior!r})"


FACTS = (
    Column("prior_precision", "number", "prior precision δ of the head"),
    Column("log_evidence", "number", "log marginal likelihood of the head", "nats"),
    Column("num_fit_answers", "integer", "answers it was fitted to"),
    Column("prior_precision_is_at_bound", "flag", "whether the search for δ ended at its bound"),
)


def prior_argument(name: PosteriorName) -> float | Literal["evidence"] | None:
    """A prior precision, `evidence`, or None for the optimiser's weight decay."""
    if name.argument == "evidence":
        return "evidence"
    return positive_number(name) if name.argument else None


def require_prior(value: object, name: PosteriorName, optim: OptimiserConfig) -> None:
    """Refuse a run without weight decay, unless the name gives a prior precision."""
    require(
        value is not None or optim.head_weight_decay > 0,
        f"posterior {name.text!r} takes the head's weight decay as prior precision, which is 0 "
        f"here; name one instead, as in '{name.text}:1'",
    )


@register_posterior("laplace", "inferred", prior_argument, require_prior, FACTS)
def fit_laplace(request: FitRequest) -> LastLayerLaplace:
    """Laplace over the run's head; by default the prior precision is the weight decay."""
    prior = request.optim.head_weight_decay if request.value is None else request.value
    curvature = request.data.head_curvature
    return LastLayerLaplace.from_curvature(curvature, prior, request.name.text, POSTERIOR_SEED)


@register_posterior("laplace-probit", "point", prior_argument, require_prior, FACTS)
def fit_probit(request: FitRequest) -> ProbitLaplace:
    """The closed-form prediction of `laplace`."""
    return ProbitLaplace(fit_laplace(request), request.name.text)
