r"""How far uncertainties from S samples may lie from those of infinitely many.

By the delta method, a sample p_s moves the three uncertainties by its share of each,

$$ -\sum_c p_{sc} \log \bar p_c, \qquad H[p_s], \qquad \mathrm{KL}(p_s \| \bar p), $$

whose means over the samples they are. The standard errors are those of these means. They say
nothing of the bias of few samples (`few_samples_correction`).

Letters: N predictions (any shape), C classes.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.uncertainty.decomposition import IMPOSSIBLE, divergence


@dataclass(frozen=True)
class StandardErrors:
    """Of each uncertainty, in nats, from the choice of the samples; NaN for a single sample."""

    total: Float[Tensor, "*N"]
    aleatoric: Float[Tensor, "*N"]
    epistemic: Float[Tensor, "*N"]


class ErrorStream:
    """Running standard errors in O(N·C) memory, once the mean prediction is known."""

    def __init__(self, log_mean_probs_NC: Float[Tensor, "*N C"]) -> None:
        self._log_mean_NC = log_mean_probs_NC
        self._mean_NC = log_mean_probs_NC.exp()
        self._num_samples = 0
        # Welford's recurrence, one row for each of the three shares.
        shape = (3, *log_mean_probs_NC.shape[:-1])
        self._centre_3N = log_mean_probs_NC.new_zeros(shape)
        self._squares_3N = log_mean_probs_NC.new_zeros(shape)

    def add(self, log_probs_NC: Float[Tensor, "*N C"]) -> None:
        """Add the predictions of one more sample, as float64 log-probabilities."""
        log_probs_NC = log_probs_NC.clamp_min(IMPOSSIBLE)
        log_ratio_NC = log_probs_NC - self._log_mean_NC
        entropy_N = -(log_probs_NC.exp() * log_probs_NC).sum(dim=-1)
        divergence_N = divergence(self._mean_NC, log_ratio_NC, torch.expm1(log_ratio_NC))
        shares_3N = torch.stack([entropy_N + divergence_N, entropy_N, divergence_N])
        self._num_samples += 1
        shift_3N = shares_3N - self._centre_3N
        self._centre_3N += shift_3N / self._num_samples
        self._squares_3N += shift_3N * (shares_3N - self._centre_3N)

    def standard_errors(self) -> StandardErrors:
        """The standard errors from the samples added so far."""
        freedom = self._num_samples * (self._num_samples - 1)
        return StandardErrors(*(self._squares_3N / (freedom or torch.nan)).sqrt())
