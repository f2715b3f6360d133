r"""Last-layer Laplace: a Gaussian over the output head, from the curvature at its trained value.

With features φ_n at the answers of clean training rows and p_n = softmax(W φ_n), the Gauss-Newton
matrix of the summed loss over the C x D head is

    H = Σ_n (diag p_n - p_n p_nᵀ) ⊗ φ_n φ_nᵀ  ≈  B ⊗ A,
    B = Σ_n (diag p_n - p_n p_nᵀ),   A = (1/N) Σ_n φ_n φ_nᵀ,

and the posterior precision is H + δI, δ being the prior precision. In the eigenbases of B and A it
is diagonal: λ_B λ_Aᵀ + δ. Factors are streamed in float64 over features, so memory does not grow
with the data; only answers are ever looked at; and samples replace the *head* alone, so that an
embedding tied to it stays as it was.

Letters: N answers, D features, C classes, B rows, T answers of a row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import exp, isclose, log
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from epigrok.errors import UserError
from epigrok.posteriors.gaussian import HeadGaussian
from epigrok.posteriors.protocol import HEAD, Facts, Sample
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import log_probabilities

PriorPrecision = float | Literal["evidence"]
LOG_PRECISION_BOUNDS = (-16.0, 18.0)
"""Natural logarithms between which the evidence is searched: 1e-7 to 7e7."""
_AT_BOUND = 1e-4
"""Relative distance of a logarithm from a bound, which the search never quite reaches."""


@dataclass(frozen=True)
class HeadCurvature:
    """Kronecker factors of the Gauss-Newton matrix, and the loss they belong to."""

    weight_CD: Float[Tensor, "C D"]
    class_factor_CC: Float[Tensor, "C C"]
    """B: a sum over answers."""
    feature_factor_DD: Float[Tensor, "D D"]
    """A: a mean over answers."""
    negative_log_likelihood: float
    num_answers: int

    @cached_property
    def class_eigen(self) -> tuple[Float[Tensor, " C"], Float[Tensor, "C C"]]:
        """Eigenvalues and eigenvectors of B, shared by all posteriors fitted to it."""
        return _eigh(self.class_factor_CC)

    @cached_property
    def feature_eigen(self) -> tuple[Float[Tensor, " D"], Float[Tensor, "D D"]]:
        """Eigenvalues and eigenvectors of A, shared likewise."""
        return _eigh(self.feature_factor_DD)


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
        """The posterior for a prior precision: a number, or the one of largest evidence."""
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
        """The prior, its evidence and the amount of data; whether the search for it hit a bound."""
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

        By the symmetric square root of the covariance, which does not depend on how degenerate
        eigenvectors happened to be chosen: nearby posteriors have nearby samples.
        """
        key = stream_key(self.seed, "laplace")
        shape = (self.weight_CD.shape[0], self.weight_CD.shape[1])
        noise_CD = normal(key, shape, index, self.weight_CD.device).double()
        return self.weight_CD + self.scaled_by_covariance_root(noise_CD)

    def scaled_by_covariance_root(self, noise_CD: Float[Tensor, "C D"]) -> Float[Tensor, "C D"]:
        """Standard noise turned into noise of the posterior's covariance."""
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
        """Those of the posterior that it predicts for."""
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


def head_curvature(
    weight_CD: Float[Tensor, "C D"],
    chunks: Iterable[tuple[Float[Tensor, "_ D"], Int[Tensor, " _"]]],
) -> HeadCurvature:
    """Stream the Kronecker factors over chunks of features and their answers."""
    weight = weight_CD.detach().double()
    class_factor_CC = weight.new_zeros(weight.shape[0], weight.shape[0])
    feature_factor_DD = weight.new_zeros(weight.shape[1], weight.shape[1])
    negative_log_likelihood, num_answers = 0.0, 0
    for features_ND, answers_N in chunks:
        phi_ND = features_ND.double()
        log_probs_NC = log_probabilities(phi_ND @ weight.T)
        probs_NC = log_probs_NC.exp()
        # Not p - p², which cancels as a prediction becomes certain.
        class_factor_CC += (probs_NC * -torch.expm1(log_probs_NC)).sum(dim=0).diag()
        class_factor_CC -= (probs_NC.T @ probs_NC).fill_diagonal_(0.0)
        feature_factor_DD += phi_ND.T @ phi_ND
        negative_log_likelihood -= log_probs_NC.gather(1, answers_N[:, None]).sum().item()
        num_answers += len(phi_ND)
    if num_answers == 0:
        raise UserError("a Laplace fit needs at least one answer")
    curvature = HeadCurvature(
        weight,
        class_factor_CC,
        feature_factor_DD / num_answers,
        negative_log_likelihood,
        num_answers,
    )
    if not (class_factor_CC.isfinite().all() and feature_factor_DD.isfinite().all()):
        raise ValueError("the Laplace factors are not finite: the features or the head are not")
    return curvature


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    values, basis = torch.linalg.eigh(matrix)
    # Positive semi-definite by construction; rounding can push the null space below zero.
    return values.clamp_min(0.0), basis


def _log_evidence(curvature: HeadCurvature, values_CD: Tensor, prior_precision: float) -> float:
    """Log marginal likelihood: -NLL - ½(log det P - CD log δ + δ‖W‖²)."""
    log_ratio = torch.log1p(values_CD / prior_precision).sum().item()
    penalty = prior_precision * curvature.weight_CD.square().sum().item()
    return -curvature.negative_log_likelihood - 0.5 * (log_ratio + penalty)


def _evidence_optimum(curvature: HeadCurvature, values_CD: Tensor) -> float:
    # Here, because only this needs SciPy, whose import takes a while.
    from scipy.optimize import minimize_scalar

    result = minimize_scalar(
        lambda log_precision: -_log_evidence(curvature, values_CD, exp(log_precision)),
        bounds=LOG_PRECISION_BOUNDS,
        method="bounded",
        options={"xatol": 1e-6},
    )
    return exp(result.x)
