"""Names of posteriors, as configurations list them and the column `posterior` has them.

A name is a kind, and for some kinds a colon and an argument: `point`, `laplace:evidence`,
`weight-noise:0.1`. The kinds register themselves in `posteriors`, each with what its argument
means; here is only the grammar, which needs no torch.

Tables have two more, the exact Bayesian predictors, which belong to the task and not to a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from epigrok.config.checks import require

POINT = "point"
"""The weights themselves; accuracy is read off this one wherever a run tracks it."""
ORACLES = ("oracle-memorising", "oracle-generalising")
"""The exact predictors: tasks uniform over the training tasks, and over all tasks."""
BELIEVES_CLEAN = ":believes-clean"
"""Follows the name of an exact predictor that takes a noisy context for a clean one."""


@dataclass(frozen=True)
class PosteriorName:
    """A name, taken apart."""

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
    """Take a name apart."""
    kind, colon, argument = text.partition(":")
    require(bool(kind), f"posterior {text!r} has no name")
    require(bool(argument) or not colon, f"posterior {text!r} has no value after the colon")
    # Names become cells of tables and lines in a terminal.
    require(text.isprintable(), f"posterior {text!r} has characters that cannot be printed")
    return PosteriorName(text, kind, argument)


def require_distinct(posteriors: Sequence[str]) -> None:
    """Refuse a posterior listed twice, also in two spellings: it would be evaluated twice."""
    parsed = map(parse_posterior, posteriors)
    meant = {(n.kind, n.argument if n.number is None else n.number) for n in parsed}
    require(
        len(meant) == len(posteriors),
        f"a posterior is listed twice in {', '.join(posteriors)}",
    )
