"""The registry of posteriors: how to make each kind, and what its argument means.

A posterior is one file with its class and a function that makes one for a run:

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
from epigrok.posteriors.head import Head, own_head
from epigrok.posteriors.head_curvature import HeadCurvature, head_curvature
from epigrok.posteriors.protocol import Posterior
from epigrok.registry import Registry

POSTERIOR_SEED = 0
"""Every run and checkpoint gets the same posterior noise, so that comparisons are paired."""

Role = Literal["point", "inferred", "control"]
"""`point`: predicts without samples, so it has no epistemic uncertainty. `inferred`: its spread
comes from the data. `control`: it does not use the data."""


@dataclass(frozen=True)
class FitData:
    """A network and clean training sequences, for posteriors that are fitted to data."""

    model: Network
    answers: Callable[[], Iterator[tuple[Float[Tensor, "N D"], Int[Tensor, " N"]]]]
    """Features and answers at scored positions, a bounded number at a time."""

    @cached_property
    def head(self) -> Head:
        """A copy of the output head."""
        return own_head(self.model, self.model.head_weight)

    @cached_property
    def head_curvature(self) -> HeadCurvature:
        """Curvature of the loss over the output head, computed once for all posteriors."""
        return head_curvature(self.head, self.answers())


@dataclass(frozen=True)
class FitRequest:
    """Everything needed to make a posterior."""

    name: PosteriorName
    """Its name in tables."""
    value: Any
    """Its argument, as `read_argument` of its kind returned it."""
    data: FitData
    optim: OptimiserConfig
    task: TaskConfig
    carried: Posterior | None
    """The posterior that the optimiser carries, if it does."""

    @property
    def model(self) -> Network:
        """The network whose weights the posterior is about."""
        return self.data.model


@dataclass(frozen=True)
class PosteriorKind:
    """How to make posteriors of one kind."""

    build: Callable[[FitRequest], Posterior]
    role: Role
    read_argument: Callable[[PosteriorName], Any]
    """Reads and checks what follows the colon of a name."""
    require_run: Callable[[Any, PosteriorName, OptimiserConfig], None]
    """Refuses runs that cannot have this posterior."""
    facts: tuple[Column, ...]
    """Columns that its rows have besides the metrics."""


def no_argument(name: PosteriorName) -> None:
    """Refuse an argument."""
    require(not name.argument, f"posterior {name.kind!r} takes no value, got {name.text!r}")


def positive_number(name: PosteriorName) -> float:
    """The argument, which must be a positive number."""
    require(name.number is not None, f"posterior {name.text!r} needs a number after the colon")
    value = name.number or 0.0
    # Below the smallest normal number, digits are lost and the inverse overflows.
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
    """Register the decorated function to make posteriors named `kind` or `kind:ARGUMENT`."""

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
    """Refuse unknown posteriors and those this run cannot have; `names` defaults to the tracked."""
    for text in names or config.evaluation.posteriors:
        name, kind = parse_posterior(text), kind_of(text)
        kind.require_run(kind.read_argument(name), name, config.optim)


def fit_posterior(
    text: str, data: FitData, config: RunConfig, carried: Posterior | None = None
) -> Posterior:
    """Fit the posterior called `text` to a network and its data."""
    name, kind = parse_posterior(text), kind_of(text)
    value = kind.read_argument(name)
    kind.require_run(value, name, config.optim)
    return kind.build(FitRequest(name, value, data, config.optim, config.task, carried))
