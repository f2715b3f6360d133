r"""Curvature of the loss over a softmax head, in Kronecker factors streamed over the data.

With features φ_n at the answers of clean training sequences and p_n = softmax(W φ_n), the
Gauss-Newton matrix of the summed loss over the C x D head is

    H = Σ_n (diag p_n - p_n p_nᵀ) ⊗ φ_n φ_nᵀ  ≈  B ⊗ A,
    B = Σ_n (diag p_n - p_n p_nᵀ),   A = (1/N) Σ_n φ_n φ_nᵀ.

The factors are streamed in float64, so memory does not grow with the data.

Letters: N answers, D features, C classes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.errors import UserError
from epigrok.uncertainty import log_probabilities


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
        """Eigenvalues and eigenvectors of A, shared by all posteriors fitted to it."""
        return _eigh(self.feature_factor_DD)


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
