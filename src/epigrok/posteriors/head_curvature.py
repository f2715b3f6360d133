r"""Curvature of the loss over a softmax head, streamed over the data, and what it is streamed from.

With features φ_n at the answers of clean training sequences and p_n = softmax(W φ_n), the
Gauss-Newton matrix of the summed loss over the C x D head is

    H = Σ_n (diag p_n - p_n p_nᵀ) ⊗ φ_n φ_nᵀ  ≈  B ⊗ A,
    B = Σ_n (diag p_n - p_n p_nᵀ),   A = (1/N) Σ_n φ_n φ_nᵀ.

A bias is one more column of W, and one more feature that is always 1. The factors are streamed in
float64, so memory does not grow with the data.

Letters: N answers, D features (with the one for a bias), C classes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import exp, isclose, log
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.posteriors.calling import (
    IGNORE_INDEX,
    LABELS,
    Forward,
    counted_positions,
    explaining_wrong_inputs,
    labels_at_their_logits,
    split_batch,
)
from epigrok.posteriors.head import Head, NoHeadError, head_pass
from epigrok.uncertainty import log_probabilities

LabelledFeatures = tuple[Float[Tensor, "_ _"], Int[Tensor, " _"]]
"""Features and the answers they should give."""
PriorPrecision = float | Literal["evidence"]
LARGEST_VOCABULARY = 8192
"""Largest number of classes C; B then takes half a gigabyte."""
LOG_PRECISION_BOUNDS = (-16.0, 18.0)
"""Range in which the evidence search looks for log δ: δ from 1e-7 to 7e7."""
_SEARCH_WIDTH = 1e-9
_AT_BOUND = 1e-4
"""Relative distance from a bound that counts as reaching it; the search never quite does."""


@dataclass(frozen=True)
class HeadCurvature:
    """Kronecker factors of the Gauss-Newton matrix, and the loss they belong to."""

    head: Head
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


def head_curvature(head: Head, answers: Iterable[LabelledFeatures]) -> HeadCurvature:
    """Stream the Kronecker factors over chunks of features and their answers."""
    require_head(head)
    weight = head.matrix.detach().double()
    num_classes, width = weight.shape
    if num_classes > LARGEST_VOCABULARY:
        raise UserError(
            f"a head of {num_classes} classes is too large for Kronecker factors, which take up to "
            f"{LARGEST_VOCABULARY}; use DiagonalLaplace"
        )
    class_factor_CC = weight.new_zeros(num_classes, num_classes)
    feature_factor_DD = weight.new_zeros(width, width)
    negative_log_likelihood, num_answers = 0.0, 0
    for features, answers_N in answers:
        phi_ND = head.extended(features).double()
        log_probs_NC = log_probabilities(phi_ND @ weight.T)
        probs_NC = log_probs_NC.exp()
        # Not p - p², which cancels as a prediction becomes certain.
        class_factor_CC += (probs_NC * -torch.expm1(log_probs_NC)).sum(dim=0).diag()
        class_factor_CC -= (probs_NC.T @ probs_NC).fill_diagonal_(0.0)
        feature_factor_DD += phi_ND.T @ phi_ND
        negative_log_likelihood -= log_probs_NC.gather(1, answers_N[:, None]).sum().item()
        num_answers += len(phi_ND)
    require_answers(num_answers, class_factor_CC, feature_factor_DD)
    return HeadCurvature(
        head,
        class_factor_CC,
        feature_factor_DD / num_answers,
        negative_log_likelihood,
        num_answers,
    )


def labelled_features(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    head: str | None = None,
    forward: Forward | None = None,
    ignore_index: int = IGNORE_INDEX,
) -> tuple[Head, Iterator[LabelledFeatures]]:
    """The head of `model`, and features and labels of the answers that count, batch by batch."""

    def passes() -> Iterator[tuple[Head, LabelledFeatures]]:
        name = head
        for batch in loader:
            inputs, labels = split_batch(batch)
            labels = _labels_of_batch(batch, labels)
            try:
                with explaining_wrong_inputs(model, inputs, forward):
                    seen = head_pass(model, inputs, forward, head=name)
            except NoHeadError as error:
                raise NoHeadError(
                    f"{error}; IVON, Ensemble, MCDropout and WeightNoise need no such head"
                ) from error
            labels = labels_at_their_logits(model, batch, labels, ignore_index)
            is_counted = counted_positions(seen.logits, inputs, labels, ignore_index=ignore_index)
            answers_N = labels.to(seen.logits.device).reshape(is_counted.shape)[is_counted]
            _require_classes(answers_N, seen.logits.shape[-1])
            yield seen.head, (seen.features[is_counted], answers_N.long())
            name = seen.head.weight_name

    found = passes()
    first = next(found, None)
    if first is None:
        raise UserError("a Laplace fit needs at least one batch, and the loader has none")
    return first[0], (answers for _, answers in chain([first], found))


def _labels_of_batch(batch: Any, labels: object) -> Tensor:
    """Refuse what is not a batch with labels: an example of a data set, say."""
    if labels is None:
        found = f"a mapping with {sorted(batch)}" if isinstance(batch, Mapping) else "none"
        raise UserError(
            "a Laplace fit needs labels, in pairs (inputs, labels) or mappings with "
            f"{LABELS!r}, got {found}; pass a single batch as [(inputs, labels)]"
        )
    if not isinstance(labels, Tensor) or labels.ndim == 0:
        raise UserError(
            "a Laplace fit needs batches, got single examples; pass DataLoader(dataset, "
            "batch_size=…)"
        )
    return labels


def _require_classes(answers_N: Tensor, num_classes: int) -> None:
    """Refuse labels that are not the numbers of classes."""
    if answers_N.is_floating_point() or answers_N.is_complex():
        raise UserError(f"labels must be numbers of classes, got {answers_N.dtype}")
    if len(answers_N) and not 0 <= answers_N.min() <= answers_N.max() < num_classes:
        raise UserError(
            f"labels must lie between 0 and {num_classes - 1}, or be ignore_index, got "
            f"{int(answers_N.min())} to {int(answers_N.max())}"
        )


def require_head(head: object) -> None:
    """Refuse a bare matrix: it does not tell whether there is a bias."""
    if not isinstance(head, Head):
        raise UserError(
            f"a head is needed, got {type(head).__name__}; use Head.of(layer), so that its bias is "
            "not forgotten"
        )


def require_answers(num_answers: int, *curvatures: Tensor) -> None:
    """Refuse a fit to nothing, or to what is not finite."""
    if num_answers == 0:
        raise UserError("a Laplace fit needs at least one answer")
    if not all(curvature.isfinite().all() for curvature in curvatures):
        raise ValueError("the curvature is not finite: the features or the head are not")


@dataclass(frozen=True)
class Evidence:
    """Log marginal likelihood of a head: -NLL - ½(log det P - CD log δ + δ‖W‖²)."""

    negative_log_likelihood: float
    values: Tensor
    """Eigenvalues of the curvature, in any shape."""
    squared_norm: float

    def log_at(self, prior_precision: float) -> float:
        """Its value at the prior precision δ."""
        log_ratio = (self.values / prior_precision).log1p_().sum().item()
        penalty = prior_precision * self.squared_norm
        return -self.negative_log_likelihood - 0.5 * (log_ratio + penalty)

    def prior_precision(self, wanted: PriorPrecision) -> float:
        """The prior precision that is asked for: a number, or that of largest evidence."""
        found = self._optimum() if wanted == "evidence" else wanted
        if isinstance(found, str) or found is None:
            raise UserError(f"the prior is a precision or 'evidence', got {found!r}")
        if not found > 0:
            raise UserError(f"the prior precision must be positive, got {found}")
        return found

    def _optimum(self) -> float:
        """Where the derivative by log δ, ½(Σ h/(h + δ) - δ‖W‖²), changes its sign.

        It falls in δ everywhere, so the optimum is the only one and bisection finds it.
        """
        low, high = LOG_PRECISION_BOUNDS
        while high - low > _SEARCH_WIDTH:
            middle = 0.5 * (low + high)
            precision = exp(middle)
            fitted = (self.values / (self.values + precision)).sum().item()
            low, high = (middle, high) if fitted > precision * self.squared_norm else (low, middle)
        return exp(0.5 * (low + high))


def is_at_bound(prior_precision: float) -> bool:
    """Whether the search for the evidence optimum ended at one of its bounds."""
    return any(
        isclose(log(prior_precision), bound, rel_tol=_AT_BOUND) for bound in LOG_PRECISION_BOUNDS
    )


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    values, basis = torch.linalg.eigh(matrix)
    # Positive semi-definite by construction; rounding can push the null space below zero.
    return values.clamp_min(0.0), basis
