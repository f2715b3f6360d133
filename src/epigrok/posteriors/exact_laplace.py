r"""Last-layer Laplace without the Kronecker approximation, for heads small enough to afford it.

$$ P = \sum_n (\mathrm{diag}\, p_n - p_n p_n^\top) \otimes \phi_n \phi_n^\top + \delta I $$

is a CD x CD matrix: quadratic memory and cubic time, so it serves as the reference for
what the Kronecker factors lose.

Letters: N answers, D features, C classes, B sequences, T answers in a sequence.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.errors import UserError
from epigrok.posteriors.gaussian import HeadGaussian
from epigrok.posteriors.kinds import POSTERIOR_SEED, FitRequest, register_posterior
from epigrok.posteriors.last_layer_laplace import FACTS, fit_laplace, prior_argument, require_prior
from epigrok.posteriors.protocol import Facts
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import log_probabilities

LARGEST_HEAD = 8192
"""Largest number of entries C·D; the matrix then takes half a gigabyte."""


@dataclass(frozen=True)
class ExactLaplace(HeadGaussian):
    """A Gaussian over the head with its full covariance."""

    weight_CD: Float[Tensor, "C D"]
    covariance_root: Float[Tensor, "CD CD"]
    """Symmetric square root of the posterior covariance."""
    prior_precision: float
    name: str = "laplace-exact"
    seed: int = 0
    max_samples: int | None = None
    facts: Facts = field(default_factory=dict)
    """Facts of the Kronecker posterior, which also gives the prior precision."""

    @classmethod
    def fit(
        cls,
        weight_CD: Float[Tensor, "C D"],
        features: Iterable[Float[Tensor, "_ D"]],
        prior_precision: float,
        name: str = "laplace-exact",
        seed: int = 0,
    ) -> "ExactLaplace":
        """The posterior around `weight_CD` from features at scored answers."""
        if not prior_precision > 0:
            raise UserError(f"the prior precision must be positive, got {prior_precision}")
        matrix = exact_curvature(weight_CD, features)
        values, basis = torch.linalg.eigh(matrix)
        values = values.clamp_min(0.0) + prior_precision
        root = (basis * values.rsqrt()) @ basis.T
        return cls(weight_CD.detach().double(), root, prior_precision, name, seed)

    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Head weights of sample `index`; shares its noise with the Kronecker posterior."""
        key, size = stream_key(self.seed, "laplace"), self.weight_CD.numel()
        noise = normal(key, (size,), index, self.weight_CD.device).double()
        return self.weight_CD + (self.covariance_root @ noise).view_as(self.weight_CD)


def exact_curvature(
    weight_CD: Float[Tensor, "C D"], features: Iterable[Float[Tensor, "_ D"]]
) -> Float[Tensor, "CD CD"]:
    """Gauss-Newton matrix of the summed loss over a softmax head, with W flattened by rows."""
    weight = weight_CD.detach().double()
    num_classes, width = weight.shape
    if weight.numel() > LARGEST_HEAD:
        raise UserError(
            f"a head of {num_classes} x {width} = {weight.numel()} entries is too large for its "
            f"exact curvature, which takes up to {LARGEST_HEAD}; use laplace instead"
        )
    matrix, num_answers = weight.new_zeros(num_classes, width, num_classes, width), 0
    for features_ND in features:
        phi_ND = features_ND.double()
        log_probs_NC = log_probabilities(phi_ND @ weight.T)
        probs_NC = log_probs_NC.exp()
        flat = (probs_NC[:, :, None] * phi_ND[:, None, :]).flatten(start_dim=1)
        products = (flat.T @ flat).view_as(matrix)
        # Not p - p², which cancels as a prediction becomes certain.
        own_NC = probs_NC * -torch.expm1(log_probs_NC)
        for c in range(num_classes):
            products[c, :, c, :] = -((own_NC[:, c, None] * phi_ND).T @ phi_ND)
        matrix -= products
        num_answers += len(phi_ND)
    if num_answers == 0:
        raise UserError("a Laplace fit needs at least one answer")
    if not matrix.isfinite().all():
        raise ValueError("the curvature is not finite: the features or the head are not")
    return matrix.view(weight.numel(), weight.numel())


@register_posterior("laplace-exact", "inferred", prior_argument, require_prior, FACTS)
def fit_exact(request: FitRequest) -> ExactLaplace:
    """`laplace` without the Kronecker approximation, at the same prior precision."""
    laplace = fit_laplace(request)
    exact = ExactLaplace.fit(
        request.model.head_weight,
        (features_ND for features_ND, _ in request.data.answers()),
        laplace.prior_precision,
        request.name.text,
        POSTERIOR_SEED,
    )
    return replace(exact, facts=laplace.facts)
