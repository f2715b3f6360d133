"""Kinds of posteriors by name: how each is made for a network, and what its argument means.

A posterior is one file: the class, and a function that makes one for a run,

    @register_posterior("mine", role="inferred")
    def fit_mine(request: FitRequest) -> Posterior: …

Letters: N answers, D features.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from jaxtyping import Float, Int
from torch import Tensor

from epigrok.columns import Column
from epigrok.config import OptimiserConfig, PosteriorName, RunConfig, TaskConfig, parse_posterior
from epigrok.config.checks import require
from epigrok.model import Network
from epigrok.posteriors.head_curvature import HeadCurvature, head_curvature
from epigrok.posteriors.protocol import Posterior
from epigrok.registry import Registry

POSTERIOR_SEED = 0
"""Posterior noise is the same in every run and at every checkpoint: comparisons are paired."""

Role = Literal["point", "inferred", "control"]
"""`point`: predicts without samples, so it has no epistemic uncertainty. `inferred`: its spread
comes from the data. `control`: it knows nothing of them."""


@dataclass(frozen=True)
class FitData:
    """A network and clean training sequences, for posteriors that need to see data."""

    model: Network
    answers: Callable[[], Iterator[tuple[Float[Tensor, "N D"], Int[Tensor, " N"]]]]
    """Features and answers wherever the sequences ask something, a bounded number at a time."""

    @cached_property
    def head_curvature(self) -> HeadCurvature:
        """Of the loss over the output head; computed once for all posteriors that need it."""
        return head_curvature(self.model.head_weight, self.answers())


@dataclass(frozen=True)
class FitRequest:
    """What a posterior is made from."""

    name: PosteriorName
    """Under which tables are to have it."""
    value: Any
    """Its argument, as `read_argument` of its kind returned it."""
    data: FitData
    optim: OptimiserConfig
    task: TaskConfig
    carried: Posterior | None
    """What the optimiser learnt, where it carries a posterior."""

    @property
    def model(self) -> Network:
        """The network whose weights the posterior is about."""
        return self.data.model


@dataclass(frozen=True)
class PosteriorKind:
    """How posteriors of one name are made."""

    build: Callable[[FitRequest], Posterior]
    role: Role
    read_argument: Callable[[PosteriorName], Any]
    """What follows the colon, read and checked."""
    require_run: Callable[[Any, PosteriorName, OptimiserConfig], None]
    """Refuses runs for which this posterior does not exist."""
    facts: tuple[Column, ...]
    """Columns that its rows have beside the metrics."""


def no_argument(name: PosteriorName) -> None:
    """Refuse an argument."""
    require(not name.argument, f"posterior {name.kind!r} takes no value, got {name.text!r}")


def positive_number(name: PosteriorName) -> float:
    """An argument that must be a positive number."""
    require(name.number is not None, f"posterior {name.text!r} needs a number after the colon")
    value = name.number or 0.0
    # The smallest normal number: what is smaller has lost its digits, and its inverse overflows.
    require(2.3e-308 < value < float("inf"), f"posterior {name.text!r} needs a positive number")
    return value


def _any_run(value: Any, name: PosteriorName, optim: OptimiserConfig) -> None:
    del value, name, optim


_KINDS: Registry[PosteriorKind] = Registry("posterior", home="epigrok.posteriors")
_Build = TypeVar("_Build", bound=Callable[[FitRequest], Any])


def register_posterior(
    kind: str,
    role: Role = "inferred",
    read_argument: Callable[[PosteriorName], Any] = no_argument,
    require_run: Callable[[Any, PosteriorName, OptimiserConfig], None] = _any_run,
    facts: tuple[Column, ...] = (),
) -> Callable[[_Build], _Build]:
    """Make posteriors named `kind`, or `kind:ARGUMENT`, by the decorated function."""

    def register(build: _Build) -> _Build:
        _KINDS.add(kind, PosteriorKind(build, role, read_argument, require_run, facts))
        return build

    return register


def posterior_kinds() -> dict[str, PosteriorKind]:
    """Every kind by its name."""
    return _KINDS.entries()


def kind_of(name: str) -> PosteriorKind:
    """The kind of the posterior called `name`."""
    return _KINDS.find(parse_posterior(name).kind)


def require_posteriors(config: RunConfig, names: tuple[str, ...] | None = None) -> None:
    """Refuse names that do not exist, or not for this run; `names` default to those it tracks."""
    for text in names or config.evaluation.posteriors:
        name, kind = parse_posterior(text), kind_of(text)
        kind.require_run(kind.read_argument(name), name, config.optim)


def fit_posterior(
    text: str, data: FitData, config: RunConfig, carried: Posterior | None = None
) -> Posterior:
    """The posterior called `text` for a network and its data."""
    name, kind = parse_posterior(text), kind_of(text)
    value = kind.read_argument(name)
    kind.require_run(value, name, config.optim)
    return kind.build(FitRequest(name, value, data, config.optim, config.task, carried))
