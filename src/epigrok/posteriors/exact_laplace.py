r"""Last-layer Laplace without the Kronecker approximation, for heads small enough to afford it.

$$ P = \sum_n (\mathrm{diag}\, p_n - p_n p_n^\top) \otimes \phi_n \phi_n^\top + \delta I $$

is a CD x CD matrix: quadratic memory and cubic time, so it serves as the reference for
what the Kronecker factors lose.

Letters: N answers, D features, C classes, B sequences, T answers in a sequence.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.errors import UserError
from epigrok.posteriors.head import Head
from epigrok.posteriors.head_curvature import (
    Evidence,
    LabelledFeatures,
    PriorPrecision,
    require_answers,
    require_head,
)
from epigrok.posteriors.head_gaussian import HeadGaussian
from epigrok.posteriors.kinds import POSTERIOR_SEED, FitRequest, register_posterior
from epigrok.posteriors.last_layer_laplace import FACTS, fit_laplace, prior_argument, require_prior
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import log_probabilities

LARGEST_HEAD = 8192
"""Largest number of entries C·D; the matrix then takes half a gigabyte."""


@dataclass(frozen=True, repr=False)
class ExactLaplace(HeadGaussian):
    """A Gaussian over the head with its full covariance."""

    head: Head
    covariance_root: Float[Tensor, "CD CD"]
    """Symmetric square root of the posterior covariance."""
    prior_precision: float
    log_evidence: float
    num_answers: int
    name: str = "laplace-exact"
    seed: int = 0
    max_samples: int | None = None

    @classmethod
    def from_answers(
        cls, head: Head, answers: Iterable[LabelledFeatures], prior: PriorPrecision
    ) -> "ExactLaplace":
        """The posterior from features and the answers they should give."""
        return cls.from_curvature(exact_curvature(head, answers), prior)

    @classmethod
    def from_curvature(
        cls,
        curvature: "ExactCurvature",
        prior: PriorPrecision,
        name: str = "laplace-exact",
        seed: int = 0,
    ) -> "ExactLaplace":
        """The posterior for a given prior precision, or for the one of largest evidence."""
        values, basis = torch.linalg.eigh(curvature.matrix)
        # Positive semi-definite by construction; rounding can push the null space below zero.
        values = values.clamp_min(0.0)
        squared_norm = curvature.head.matrix.double().square().sum().item()
        evidence = Evidence(curvature.negative_log_likelihood, values, squared_norm)
        prior_precision = evidence.prior_precision(prior)
        root = (basis * (values + prior_precision).rsqrt()) @ basis.T
        log_evidence, num_answers = evidence.log_at(prior_precision), curvature.num_answers
        return cls(curvature.head, root, prior_precision, log_evidence, num_answers, name, seed)

    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Head weights of sample `index`; shares its noise with the Kronecker posterior."""
        weight_CD = self.head.matrix.double()
        key = stream_key(self.seed, "laplace")
        noise = normal(key, (weight_CD.numel(),), index, weight_CD.device).double()
        return weight_CD + (self.covariance_root @ noise).view_as(weight_CD)


@dataclass(frozen=True)
class ExactCurvature:
    """The Gauss-Newton matrix of the summed loss, and that loss."""

    head: Head
    matrix: Float[Tensor, "CD CD"]
    """Over the head's matrix, flattened by rows."""
    negative_log_likelihood: float
    num_answers: int


def exact_curvature(head: Head, answers: Iterable[LabelledFeatures]) -> ExactCurvature:
    """Stream the Gauss-Newton matrix of a softmax head over chunks of features and answers."""
    require_head(head)
    weight = head.matrix.detach().double()
    num_classes, width = weight.shape
    if weight.numel() > LARGEST_HEAD:
        raise UserError(
            f"a head of {num_classes} x {width} = {weight.numel()} entries is too large for its "
            f"exact curvature, which takes up to {LARGEST_HEAD}; use laplace instead"
        )
    matrix = weight.new_zeros(num_classes, width, num_classes, width)
    negative_log_likelihood, num_answers = 0.0, 0
    for features, answers_N in answers:
        phi_ND = head.extended(features).double()
        log_probs_NC = log_probabilities(phi_ND @ weight.T)
        probs_NC = log_probs_NC.exp()
        flat = (probs_NC[:, :, None] * phi_ND[:, None, :]).flatten(start_dim=1)
        products = (flat.T @ flat).view_as(matrix)
        # Not p - p², which cancels as a prediction becomes certain.
        own_NC = probs_NC * -torch.expm1(log_probs_NC)
        for c in range(num_classes):
            products[c, :, c, :] = -((own_NC[:, c, None] * phi_ND).T @ phi_ND)
        matrix -= products
        negative_log_likelihood -= log_probs_NC.gather(1, answers_N[:, None]).sum().item()
        num_answers += len(phi_ND)
    require_answers(num_answers, matrix)
    flat_matrix = matrix.view(weight.numel(), weight.numel())
    return ExactCurvature(head, flat_matrix, negative_log_likelihood, num_answers)


@register_posterior("laplace-exact", "inferred", prior_argument, require_prior, FACTS)
def fit_exact(request: FitRequest) -> ExactLaplace:
    """`laplace` without the Kronecker approximation, at its prior precision, with its evidence."""
    laplace = fit_laplace(request)
    curvature = exact_curvature(laplace.head, request.data.answers())
    prior, name = laplace.prior_precision, request.name.text
    exact = ExactLaplace.from_curvature(curvature, prior, name, POSTERIOR_SEED)
    return replace(exact, log_evidence=laplace.log_evidence)
