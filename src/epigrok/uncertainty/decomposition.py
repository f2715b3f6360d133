r"""Total, aleatoric and epistemic uncertainty of a set of predictions, streamed over samples.

$$ H[\bar p] = \frac1S \sum_s H[p_s] + \frac1S \sum_s \mathrm{KL}(p_s \| \bar p), \quad
   \bar p = \frac1S \sum_s p_s $$

Entropies are in nats and computed in float64 from log-probabilities. The epistemic part is *not*
the difference of the two entropies: after grokking it is many orders smaller and would drown in
their rounding. It is a difference of divergences from a reference q close to all samples, the first
sample, which keeps its relative accuracy and needs one pass:

$$ \frac1S \sum_s \mathrm{KL}(p_s \| \bar p)
   = \frac1S \sum_s \mathrm{KL}(p_s \| q) - \mathrm{KL}(\bar p \| q) $$

Letters: S samples, N predictions (any shape), C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from epigrok.errors import UserError

_SMALLEST_LOG = -700.0
"""Smaller log-probabilities count as zero; e^-700 is still a normal float64."""
IMPOSSIBLE = -1e5
"""Replaces the logarithm of zero: finite, so that zero times it is zero."""


@dataclass(frozen=True)
class EntropyDecomposition:
    """Uncertainties in nats; `total` is the sum of the other two."""

    total: Float[Tensor, "*N"]
    aleatoric: Float[Tensor, "*N"]
    epistemic: Float[Tensor, "*N"]
    """Plug-in value, between 0 and log(num_samples); biased down for few samples."""
    num_samples: int

    @property
    def epistemic_corrected(self) -> Float[Tensor, "*N"]:
        """Epistemic uncertainty times S/(S-1).

        While the samples differ little, the plug-in value is half their scaled variance around
        their own mean, and so too low by the factor (S-1)/S. Where it is large (nats), the
        correction is rough: usually too small, but with a few samples that contradict each other
        the result may even exceed the logarithm of the number of classes.
        """
        return self.epistemic * few_samples_correction(self.num_samples)


def few_samples_correction(num_samples: int) -> float:
    """S/(S-1); 1 for a single sample, which has no uncertainty to correct."""
    return num_samples / max(1, num_samples - 1)


class EntropyStream:
    """Running decomposition in O(N·C) memory, whatever the number of samples."""

    def __init__(self) -> None:
        self.num_samples = 0

    def add(self, log_probs_NC: Float[Tensor, "*N C"]) -> None:
        """Add the predictions of one more sample, as float64 log-probabilities."""
        log_probs_NC = log_probs_NC.clamp_min(IMPOSSIBLE)
        if self.num_samples == 0:
            # Any positive reference works; exact zeros do not.
            self._log_reference_NC = log_probs_NC.clamp_min(_SMALLEST_LOG)
            self._reference_NC = self._log_reference_NC.exp()
            self._sum_of_shifts_NC = torch.zeros_like(log_probs_NC)
            self._sum_of_divergences_N = torch.zeros_like(log_probs_NC[..., 0])
            self._sum_of_entropies_N = torch.zeros_like(log_probs_NC[..., 0])
        log_ratio_NC = log_probs_NC - self._log_reference_NC
        growth_NC = torch.expm1(log_ratio_NC)
        self._sum_of_shifts_NC += self._reference_NC * growth_NC
        self._sum_of_divergences_N += divergence(self._reference_NC, log_ratio_NC, growth_NC)
        # From the sample's own exponential: reference times growth loses the digits of a class
        # that is far less likely than under the reference.
        self._sum_of_entropies_N -= (log_probs_NC.exp() * log_probs_NC).sum(dim=-1)
        self.num_samples += 1

    def mean_probs(self) -> Float[Tensor, "*N C"]:
        """Class probabilities of the averaged prediction."""
        return self._reference_NC + self._sum_of_shifts_NC / self.num_samples

    def log_mean_probs(self) -> Float[Tensor, "*N C"]:
        """Logarithm of the averaged prediction, bounded from below where it vanishes."""
        return (self._log_reference_NC + self._log_ratio_of_mean()).clamp_min(_SMALLEST_LOG)

    def decomposition(self) -> EntropyDecomposition:
        """The uncertainties of the samples added so far."""
        log_ratio_NC = self._log_ratio_of_mean()
        growth_NC = self._sum_of_shifts_NC / self.num_samples / self._reference_NC
        divergence_N = divergence(self._reference_NC, log_ratio_NC, growth_NC)
        epistemic_N = self._sum_of_divergences_N / self.num_samples - divergence_N
        # Between 0 and log S by Jensen; rounding can still push it past either end.
        epistemic_N = epistemic_N.clamp(0.0, log(self.num_samples))
        aleatoric_N = self._sum_of_entropies_N / self.num_samples
        return EntropyDecomposition(
            aleatoric_N + epistemic_N, aleatoric_N, epistemic_N, self.num_samples
        )

    def _log_ratio_of_mean(self) -> Float[Tensor, "*N C"]:
        growth_NC = self._sum_of_shifts_NC / self.num_samples / self._reference_NC
        # Rounding may make a class that vanishes shrink by slightly more than all of it.
        return torch.log1p(growth_NC.clamp_min(-1.0)).clamp_min(IMPOSSIBLE)


def decompose(
    probs_SNC: Shaped[Tensor, "S *N C"] | NDArray[Any] | Sequence[object],
) -> EntropyDecomposition:
    """Decompose the uncertainty of class probabilities under S samples.

    Args:
        probs_SNC: Class probabilities under each sample, classes last; a tensor, a list with a
            tensor per sample, or what `torch.as_tensor` makes one of.

    Returns:
        Uncertainties in nats for each of the N predictions.
    """
    probs_SNC = _as_tensor(probs_SNC)
    if probs_SNC.ndim < 2 or len(probs_SNC) == 0:
        raise UserError(
            "probabilities must have samples first and classes last, got shape "
            f"{list(probs_SNC.shape)}"
        )
    # Rounding is relative for each class, so the sum has at most the same relative error; twice
    # that if the caller normalised in the same precision.
    is_exact = not probs_SNC.is_floating_point()
    rounding = 1e-5 if is_exact else max(1e-5, 2 * torch.finfo(probs_SNC.dtype).eps)
    probs_SNC = probs_SNC.double()
    sums_SN = probs_SNC.sum(dim=-1)
    if not ((probs_SNC >= 0).all() and ((sums_SN - 1.0).abs() <= rounding).all()):
        raise UserError("probabilities must be non-negative and sum to one over the last axis")
    stream = EntropyStream()
    for probs_NC in probs_SNC / sums_SN[..., None]:
        stream.add(probs_NC.log())
    return stream.decomposition()


def _as_tensor(values: object) -> Tensor:
    try:
        if isinstance(values, Sequence) and values and all(isinstance(v, Tensor) for v in values):
            values = torch.stack(list(values))
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"probabilities must be an array of numbers: {error}") from error
    if tensor.is_complex():
        raise UserError("probabilities must be real numbers")
    return tensor


def log_probabilities(logits_NC: Float[Tensor, "*N C"]) -> Float[Tensor, "*N C"]:
    """Float64 log-softmax whose relative error stays small as a prediction becomes certain.

    The usual log(sum of exp) rounds 1 + 1e-20 to 1; summing all classes but the largest and taking
    log1p keeps the log-probability of a saturated class, -1e-20, to full precision.
    """
    shifted_NC = logits_NC.double()
    shifted_NC = shifted_NC - shifted_NC.amax(dim=-1, keepdim=True)
    top_N1 = shifted_NC.argmax(dim=-1, keepdim=True)
    others_N1 = shifted_NC.exp().scatter(-1, top_N1, 0.0).sum(dim=-1, keepdim=True)
    return shifted_NC - torch.log1p(others_N1)


def divergence(q_NC: Tensor, log_ratio_NC: Tensor, growth_NC: Tensor) -> Tensor:
    """KL(p ‖ q) = Σ p·d - (p - q) with d = log(p/q) and p/q = 1 + growth.

    The subtraction leaves a relative error of about 1e-16/d, so p and q may agree to ten digits.
    """
    return (q_NC * ((1.0 + growth_NC) * log_ratio_NC - growth_NC)).sum(dim=-1)
