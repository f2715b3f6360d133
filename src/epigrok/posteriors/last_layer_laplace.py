r"""Last-layer Laplace: a Gaussian over the output head, from the curvature at its trained value.

The posterior precision is H + δI with the Gauss-Newton matrix H ≈ B ⊗ A of `head_curvature` and the
prior precision δ. In the eigenbases of B and A it is diagonal: λ_B λ_Aᵀ + δ. Samples replace
the *head* alone; an embedding tied to it does not change.

Letters: N answers, D features, C classes, B sequences, T answers in a sequence.
"""

from dataclasses import dataclass
from math import exp, isclose, log
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from epigrok.columns import Column
from epigrok.config import OptimiserConfig, PosteriorName
from epigrok.config.checks import require
from epigrok.errors import UserError
from epigrok.posteriors.gaussian import HeadGaussian
from epigrok.posteriors.head_curvature import HeadCurvature
from epigrok.posteriors.kinds import (
    POSTERIOR_SEED,
    FitRequest,
    positive_number,
    register_posterior,
)
from epigrok.posteriors.protocol import HEAD, Facts, Sample
from epigrok.random_streams import normal, stream_key

PriorPrecision = float | Literal["evidence"]
LOG_PRECISION_BOUNDS = (-16.0, 18.0)
"""Range in which the evidence search looks for log δ: δ from 1e-7 to 7e7."""
_AT_BOUND = 1e-4
"""Relative distance from a bound that counts as reaching it; the search never quite does."""


@dataclass(frozen=True)
class LastLayerLaplace(HeadGaussian):
    """The Kronecker-factored posterior, in the eigenbases of its factors."""

    weight_CD: Float[Tensor, "C D"]
    class_basis_CC: Float[Tensor, "C C"]
    feature_basis_DD: Float[Tensor, "D D"]
    precision_CD: Float[Tensor, "C D"]
    """Posterior precision of each pair of eigenvectors."""
    prior_precision: float
    log_evidence: float
    num_answers: int
    """Answers it was fitted to: the curvature is a sum over them."""
    name: str = "laplace"
    seed: int = 0
    max_samples: int | None = None

    @classmethod
    def fit(
        cls,
        curvature: HeadCurvature,
        prior_precision: PriorPrecision,
        name: str = "laplace",
        seed: int = 0,
    ) -> "LastLayerLaplace":
        """The posterior for a given prior precision, or for the one of largest evidence."""
        class_values_C, class_basis_CC = curvature.class_eigen
        feature_values_D, feature_basis_DD = curvature.feature_eigen
        values_CD = class_values_C[:, None] * feature_values_D
        if prior_precision == "evidence":
            prior_precision = _evidence_optimum(curvature, values_CD)
        if not prior_precision > 0:
            raise UserError(f"the prior precision must be positive, got {prior_precision}")
        return cls(
            curvature.weight_CD.double(),
            class_basis_CC,
            feature_basis_DD,
            values_CD + prior_precision,
            prior_precision,
            _log_evidence(curvature, values_CD, prior_precision),
            curvature.num_answers,
            name,
            seed,
        )

    @property
    def facts(self) -> Facts:
        """Prior precision, evidence, number of answers, and whether the search hit a bound."""
        return {
            "prior_precision": self.prior_precision,
            "log_evidence": self.log_evidence,
            "num_fit_answers": self.num_answers,
            "prior_precision_is_at_bound": any(
                isclose(log(self.prior_precision), bound, rel_tol=_AT_BOUND)
                for bound in LOG_PRECISION_BOUNDS
            ),
        }

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
        squared = (features.double() @ self.feature_basis_DD).square()
        return squared @ self.precision_CD.reciprocal().T @ self.class_basis_CC.square().T


@dataclass(frozen=True)
class ProbitLaplace:
    """Closed-form prediction of a Laplace posterior: logits damped by their own variance.

    softmax(f_c / √(1 + π/8 v_c)), with mean f and variance v of each logit (MacKay 1992).
    """

    posterior: LastLayerLaplace
    name: str = "laplace-probit"
    max_samples: int | None = 1

    @property
    def facts(self) -> Facts:
        """The facts of its Laplace posterior."""
        return self.posterior.facts

    def sample(self, index: int) -> Sample:
        """The mean weights: the damping happens in `head_logits`."""
        del index
        return {HEAD: self.posterior.weight_CD.to(torch.float32)}

    def head_logits(
        self, features_BTD: Float[Tensor, "B T D"], index: int
    ) -> Float[Tensor, "B T C"]:
        """Damped logits."""
        del index
        mean = functional.linear(features_BTD.double(), self.posterior.weight_CD)
        variance = self.posterior.logit_variance(features_BTD)
        return mean / (1.0 + torch.pi / 8.0 * variance).sqrt()


def _log_evidence(curvature: HeadCurvature, values_CD: Tensor, prior_precision: float) -> float:
    """Log marginal likelihood: -NLL - ½(log det P - CD log δ + δ‖W‖²)."""
    log_ratio = torch.log1p(values_CD / prior_precision).sum().item()
    penalty = prior_precision * curvature.weight_CD.square().sum().item()
    return -curvature.negative_log_likelihood - 0.5 * (log_ratio + penalty)


def _evidence_optimum(curvature: HeadCurvature, values_CD: Tensor) -> float:
    # Imported here, because only this function needs SciPy, which is slow to import.
    from scipy.optimize import minimize_scalar

    result = minimize_scalar(
        lambda log_precision: -_log_evidence(curvature, values_CD, exp(log_precision)),
        bounds=LOG_PRECISION_BOUNDS,
        method="bounded",
        options={"xatol": 1e-6},
    )
    return exp(result.x)


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
    return LastLayerLaplace.fit(curvature, prior, request.name.text, POSTERIOR_SEED)


@register_posterior("laplace-probit", "point", prior_argument, require_prior, FACTS)
def fit_probit(request: FitRequest) -> ProbitLaplace:
    """The closed-form prediction of `laplace`."""
    return ProbitLaplace(fit_laplace(request), request.name.text)
