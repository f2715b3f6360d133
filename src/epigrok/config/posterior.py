"""Names of posteriors, in configurations and in the column `posterior` of tables.

A name is a kind, which some kinds follow with a colon and an argument: `point`,
`laplace:evidence`, `weight-noise:0.1`. This module knows only the grammar of names and needs no
torch. The package `posteriors` registers the kinds and says what their arguments mean.

Tables have two more names, the exact predictors, which belong to the task and not to a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from epigrok.config.checks import require

POINT = "point"
"""The weights themselves. Accuracy is that of `point` wherever a run tracks it."""
ORACLES = ("oracle-memorising", "oracle-generalising")
"""The exact predictors: tasks uniform over the training tasks, and over all tasks."""
BELIEVES_CLEAN = ":believes-clean"
"""Suffix of an exact predictor that assumes a clean context although it is noisy."""


@dataclass(frozen=True)
class PosteriorName:
    """The name of a posterior in its parts."""

    text: str
    kind: str
    argument: str
    """What follows the colon; empty if there is none."""

    @property
    def number(self) -> float | None:
        """The argument as a number, if it is one."""
        try:
            return float(self.argument)
        except ValueError:
            return None


def parse_posterior(text: str) -> PosteriorName:
    """Split the name of a posterior into its parts."""
    kind, colon, argument = text.partition(":")
    require(bool(kind), f"posterior {text!r} has no name")
    require(bool(argument) or not colon, f"posterior {text!r} has no value after the colon")
    # Tables and terminals show these names.
    require(text.isprintable(), f"posterior {text!r} has unprintable characters")
    return PosteriorName(text, kind, argument)


def require_distinct(posteriors: Sequence[str]) -> None:
    """Refuse a posterior listed twice, even in two spellings such as 0.1 and 0.10."""
    parsed = map(parse_posterior, posteriors)
    meant = {(n.kind, n.argument if n.number is None else n.number) for n in parsed}
    require(
        len(meant) == len(posteriors),
        f"a posterior is listed twice in {', '.join(posteriors)}",
    )
