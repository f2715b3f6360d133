"""The weights themselves: a posterior without spread, whose epistemic uncertainty is zero."""

from dataclasses import dataclass

from epigrok.posteriors.protocol import Sample


@dataclass(frozen=True)
class Point:
    """The maximum-a-posteriori weights."""

    name: str = "point"
    max_samples: int | None = 1

    def sample(self, index: int) -> Sample:
        """Replace nothing."""
        del index
        return {}
