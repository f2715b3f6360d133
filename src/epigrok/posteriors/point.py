"""The weights themselves: a posterior without spread, whose epistemic uncertainty is zero."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from epigrok.model import Network
from epigrok.posteriors.kinds import FitRequest, register_posterior
from epigrok.posteriors.protocol import HEAD, Sample


@dataclass(frozen=True)
class Point:
    """The maximum-a-posteriori weights."""

    head_weight_CD: Float[Tensor, "C D"]
    name: str = "point"
    max_samples: int | None = 1

    @classmethod
    def of(cls, model: Network) -> "Point":
        """The present weights of `model`."""
        return cls(model.head_weight.detach().clone())

    def sample(self, index: int) -> Sample:
        """The unchanged head."""
        del index
        return {HEAD: self.head_weight_CD}

    def head_logits(
        self, features_BTD: Float[Tensor, "B T D"], index: int
    ) -> Float[Tensor, "B T C"]:
        """The network's own logits."""
        del index
        return functional.linear(features_BTD, self.head_weight_CD)


@register_posterior("point", role="point")
def fit_point(request: FitRequest) -> Point:
    """The run's weights themselves."""
    return Point.of(request.model)
