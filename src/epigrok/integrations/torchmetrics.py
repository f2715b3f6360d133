"""Epistemic uncertainty as a torchmetrics metric (`pip install epigrok[torchmetrics]`)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.errors import UserError
from epigrok.extras import extra_named
from epigrok.uncertainty import decompose

with extra_named():
    from torchmetrics import Metric

PARTS = ("epistemic", "aleatoric", "total")


class EpistemicUncertainty(Metric):
    """Mean over predictions of what samples disagree on, in nats; or another part of the entropy.

    ```python
    metric = EpistemicUncertainty()
    metric.update(probabilities)  # samples first, classes last: (S, batch, …, C)
    metric.compute()
    ```
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False
    sum_of_parts: Tensor
    num_predictions: Tensor

    def __init__(self, part: str = "epistemic", **kwargs: Any) -> None:
        """One of `PARTS` to average; other arguments go to `torchmetrics.Metric`."""
        super().__init__(**kwargs)
        if part not in PARTS:
            raise UserError(f"part must be one of {', '.join(PARTS)}, got {part!r}")
        self._part = part
        zero = torch.zeros((), dtype=torch.float64)
        self.add_state("sum_of_parts", zero.clone(), dist_reduce_fx="sum")
        self.add_state("num_predictions", zero.clone(), dist_reduce_fx="sum")

    def update(self, probs_SNC: Float[Tensor, "S *N C"]) -> None:
        """Add predictions: class probabilities under each sample."""
        found: Tensor = getattr(decompose(probs_SNC), self._part)
        self.sum_of_parts += found.sum()
        self.num_predictions += found.numel()

    def compute(self) -> Float[Tensor, ""]:
        """The mean over all predictions so far."""
        mean: Tensor = self.sum_of_parts / self.num_predictions
        return mean
