"""The weights themselves: a posterior without spread, whose epistemic uncertainty is zero."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from epigrok.posteriors.gaussian import frozen_tensors
from epigrok.posteriors.kinds import FitRequest, register_posterior
from epigrok.posteriors.protocol import save_posterior


@dataclass(frozen=True)
class Point:
    """The weights that were found, as if they were certain."""

    tensors: Mapping[str, Tensor]
    """Parameters and buffers."""
    name: str = "point"
    max_samples: int | None = 1
    save = save_posterior

    @classmethod
    def of(cls, model: nn.Module) -> "Point":
        """The present weights of `model`."""
        return cls(frozen_tensors(model))

    def sample(self, index: int) -> Mapping[str, Tensor]:
        """The weights."""
        del index
        return self.tensors

    def __repr__(self) -> str:
        return f"Point({len(self.tensors)} tensors)"


@register_posterior("point", role="point")
def fit_point(request: FitRequest) -> Point:
    """The run's weights themselves."""
    return Point.of(request.model)
