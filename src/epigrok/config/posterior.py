"""Which posteriors a run tracks: short names that are also the values of the `posterior` column.

point                    the weights themselves
laplace[:δ]              last-layer Laplace; δ is a prior precision, `evidence`, or by default
the optimiser's weight decay
laplace-exact[:δ]        the same without the Kronecker approximation (small heads only)
laplace-probit[:δ]       closed-form prediction of `laplace`
weight-noise:s           Gaussian noise of s times each matrix's standard deviation
ivon                     the posterior of the IVON optimiser
ivon-isotropic           fixed noise of IVON's initial σ on every matrix, the control for `ivon`

Tables have two more, the exact Bayesian predictors, which belong to the task and not to a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from epigrok.config.checks import require
from epigrok.errors import UserError

ORACLES = ("oracle-memorising", "oracle-generalising")
"""The exact predictors: tasks uniform over the training tasks, and over all tasks."""
BELIEVES_CLEAN = ":believes-clean"
"""Follows the name of an exact predictor that takes a noisy context for a clean one."""

_LAPLACE = ("laplace", "laplace-exact", "laplace-probit")
_IVON = ("ivon", "ivon-isotropic")


@dataclass(frozen=True)
class PosteriorName:
    """A parsed posterior name."""

    text: str
    kind: str
    value: float | Literal["evidence"] | None

    @property
    def needs_ivon(self) -> bool:
        """Whether it exists only for runs trained with IVON."""
        return self.kind in _IVON

    @property
    def is_laplace(self) -> bool:
        """Whether it needs the curvature of the output head."""
        return self.kind in _LAPLACE


def require_distinct(posteriors: Sequence[str]) -> None:
    """Refuse a posterior listed twice, also in two spellings: it would be evaluated twice."""
    meant = {(name.kind, name.value) for name in map(parse_posterior, posteriors)}
    require(
        len(meant) == len(posteriors),
        f"a posterior is listed twice in {', '.join(posteriors)}",
    )


def parse_posterior(text: str) -> PosteriorName:
    """Read a posterior's name, or say which there are."""
    kind, colon, argument = text.partition(":")
    require(bool(argument) or not colon, f"posterior {text!r} has no value after the colon")
    known = ("point", *_LAPLACE, "weight-noise", *_IVON)
    require(kind in known, f"no posterior named {text!r}; there are: {', '.join(known)}")
    if kind in ("point", *_IVON):
        require(not argument, f"posterior {kind!r} takes no value, got {text!r}")
        return PosteriorName(text, kind, None)
    if kind in _LAPLACE and argument in ("", "evidence"):
        return PosteriorName(text, kind, "evidence" if argument else None)
    try:
        value = float(argument)
    except ValueError:
        raise UserError(f"posterior {text!r} needs a number after the colon") from None
    require(0 < value < float("inf"), f"posterior {text!r} needs a positive number")
    return PosteriorName(text, kind, value)
