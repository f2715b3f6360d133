r"""Exact Bayesian in-context prediction over a finite set of task hypotheses.

A shown answer is right with probability 1 - e, and otherwise a uniform token; the asked answer is
right with probability 1 - q. After `m_a` matching examples hypothesis a has posterior weight

$$ w_a \propto \pi_a \left(\frac{1 - e + e/p}{e/p}\right)^{m_a}, \qquad
   P(v) = (1-q) \sum_a w_a\, 1[f_a(x) = v] + q/p. $$

With π uniform over the training tasks this is the exact *memoriser*, with π uniform over all tasks
the exact *generaliser*. Its entropy is the uncertainty about the task that no amount of training
removes.

Letters: A hypotheses, N inputs, B sequences, T examples in a sequence, C classes.
"""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.errors import UserError
from epigrok.uncertainty.index_sums import sums_by_index

ELEMENTS_PER_CHUNK = 1 << 24
"""Sequences x examples x hypotheses held at a time; bounds memory, changes no number."""


@dataclass(frozen=True)
class BayesOracle:
    """The exact predictor under a uniform prior over given hypotheses."""

    answers_AN: Int[Tensor, "A N"]
    """Answer of every hypothesis to every input."""
    num_classes: int
    noise: float = 1e-3
    """Probability e that a shown answer is a uniform token. It must be above 0: otherwise no
    hypothesis is left when none explains the context."""
    asked_noise: float | None = None
    """The same probability q for the asked answer; by default equal to `noise`."""

    def __post_init__(self) -> None:
        for noise in (self.noise, self.noise if self.asked_noise is None else self.asked_noise):
            if not 0.0 < noise <= 1.0:
                raise UserError(f"the oracle's noise must lie in (0, 1], got {noise}")

    def log_probs(
        self, inputs_BT: Int[Tensor, "B T"], shown_BT: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T C"]:
        """Log predictive distribution of each answer from the examples before it.

        Args:
            inputs_BT: Column of each example's input in `answers_AN`.
            shown_BT: The answer that the context shows for it, right or wrong.
        """
        num_inputs = self.answers_AN.shape[1]
        # A negative index would count from the end.
        if inputs_BT.numel() and not 0 <= inputs_BT.min() <= inputs_BT.max() < num_inputs:
            raise UserError(
                f"inputs are columns of the oracle's answers, from 0 to {num_inputs - 1}, got "
                f"{int(inputs_BT.min())} to {int(inputs_BT.max())}"
            )
        num_sequences, num_examples = inputs_BT.shape
        size = max(1, ELEMENTS_PER_CHUNK // (num_examples * len(self.answers_AN)))
        parts = [
            self._predict(inputs_BT[start : start + size], shown_BT[start : start + size])
            for start in range(0, num_sequences, size)
        ]
        return torch.cat(parts).log()

    def _predict(self, inputs_BT: Tensor, shown_BT: Tensor) -> Tensor:
        answers_BTA = self.answers_AN.T[inputs_BT].long()
        is_match_BTA = answers_BTA == shown_BT[..., None]
        # Matches *before* an example: its own answer is the one asked.
        matches_BTA = is_match_BTA.cumsum(dim=1) - is_match_BTA.to(torch.int64)
        floor = self.noise / self.num_classes
        # Two logarithms, because the quotient of the tiniest noise would overflow.
        log_odds = log(1.0 - self.noise + floor) - (log(self.noise) - log(self.num_classes))
        weights_BTA = (matches_BTA.double() * log_odds).softmax(dim=-1)
        probs_BTC = sums_by_index(weights_BTA, answers_BTA, self.num_classes)
        asked = self.noise if self.asked_noise is None else self.asked_noise
        return (1.0 - asked) * probs_BTC + asked / self.num_classes


def symmetric_divergence(
    log_p: Float[Tensor, "*N C"], log_q: Float[Tensor, "*N C"]
) -> Float[Tensor, "*N"]:
    """Mean of KL(p ‖ q) and KL(q ‖ p), in nats."""
    return 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(dim=-1)


def relative_position(to_generaliser: Tensor, to_memoriser: Tensor, between: Tensor) -> Tensor:
    """Position of a predictor between the two: -1 at the generaliser, +1 at the memoriser."""
    return ((to_generaliser - to_memoriser) / between).clamp(-1.0, 1.0)
