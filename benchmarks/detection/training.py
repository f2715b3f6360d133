"""Trains one run of the suite and stops at every look."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from benchmarks.detection.kinds.data_sets import Data
from benchmarks.detection.optimisers import stepper
from epigrok.posteriors.ivon import IVON
from epigrok.random_streams import integers, stream_key

Role = Literal[
    "development", "unseen by rule 1", "unseen by rule 3", "unseen by rule 4", "unseen by rule 5",
    "unseen by rule 6", "unseen by rule 7",
]  # fmt: skip
ROLES: tuple[Role, ...] = get_args(Role)
Truth = Literal["generalises", "does not", "loses it", "in between", "blind spot"]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of training on one training set."""

    data: Callable[[int], Data]
    steps: int
    optimiser: str = "adamw"
    settings: dict[str, Any] = field(default_factory=dict)
    batch: int = 512
    loss: Literal["cross entropy", "smoothed", "focal", "squares"] = "cross entropy"
    is_watched: bool = True
    watches: Literal["own", "first"] = "own"
    """Whether the watched sets are those of this phase's data or of the first phase's."""
    new_head: bool = False


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A run of the suite; each is trained from two seeds on the same data."""

    name: str
    kind: str
    role: Role
    truth: Truth
    """What the run was made to do; scores use what it did."""
    network: Callable[..., nn.Module]
    phases: tuple[Phase, ...]

    @property
    def cost(self) -> float:
        """A rough guess, to start long runs first."""
        slow = 1.0
        if "CNN" in str(self.network):
            slow = 2.0
        if "Recurrent" in str(self.network):
            slow = 3.0
        if "Transformer" in str(self.network):
            slow = 4.0 * getattr(self.network, "keywords", {}).get("num_layers", 1) ** 2
        return slow * sum(phase.steps * phase.batch**0.5 for phase in self.phases)


@dataclass(frozen=True, kw_only=True)
class Look:
    step: int
    phase: int
    model: nn.Module
    data: Data
    watched: dict[str, tuple[Tensor, Tensor]]
    train_seconds: float
    deviation: Mapping[str, Tensor] | None = None
    """Standard deviation of each weight, where the optimiser learns one."""


def build(spec: Spec, seed: int, data: Data) -> nn.Module:
    """The untrained network."""
    torch.manual_seed(stream_key(seed, f"detection:{spec.name}:weights") & 0x7FFFFFFF)
    x = data.train[0]
    arguments: dict[str, Any] = {"inputs": x[0].numel(), "num_classes": data.num_classes}
    if data.vocabulary:
        arguments["vocabulary"] = data.vocabulary
    return spec.network(**arguments)


def look_steps(phase: Phase, num_looks: int) -> set[int]:
    """Steps at which a phase is looked at, evenly spaced in log step."""
    first = min(10, phase.steps)
    return {int(step) for step in np.geomspace(first, phase.steps, num_looks).round()}


def looks(spec: Spec, seed: int, num_looks: int, length: float = 1.0) -> Iterator[Look]:
    """Train, and yield at every look. `length` shortens all phases alike."""
    first_data = spec.phases[0].data(0)
    model = build(spec, seed, first_data)
    total, elapsed = 0, 0.0
    num_watched = sum(phase.is_watched for phase in spec.phases)
    for index, phase in enumerate(spec.phases):
        data = phase.data(index) if index else first_data
        watched = (first_data if phase.watches == "first" else data).watched
        x, y = data.train
        if phase.new_head:
            model.head = nn.Linear(model.head.in_features, data.num_classes)
        num_steps = max(1, round(length * phase.steps))
        step, optimisers = stepper(model, phase.optimiser, seed, **_own_settings(phase, len(x)))
        stops = look_steps(phase, num_looks // num_watched) if phase.is_watched else set()
        stops = {max(1, round(length * stop)) for stop in stops}
        key = stream_key(seed, f"detection:{spec.name}:{index}:batches")
        start = perf_counter()
        for done in range(1, num_steps + 1):
            model.train()
            chosen = _batch(key, len(x), phase.batch, done)
            batch = (x, y) if chosen is None else (x[chosen], y[chosen])
            step(partial(loss_of, model, *batch, phase.loss))
            if done in stops:
                elapsed += perf_counter() - start
                yield Look(
                    step=total + done,
                    phase=index,
                    model=model,
                    data=data,
                    watched=watched,
                    train_seconds=elapsed,
                    deviation=_deviation(optimisers[0], model),
                )
                start = perf_counter()
        total += num_steps


def loss_of(model: nn.Module, x: Tensor, y: Tensor, kind: str = "cross entropy") -> Tensor:
    """Mean loss over rows and answer positions."""
    logits = model(x).flatten(0, -2)
    if kind == "squares":
        wanted = one_hot(y.flatten(), logits.shape[1]).to(logits.dtype)
        return (logits - wanted).square().sum(dim=1).mean()
    if kind == "focal":
        each = cross_entropy(logits, y.flatten(), reduction="none")
        return ((1.0 - (-each).exp()).square() * each).mean()
    return cross_entropy(logits, y.flatten(), label_smoothing=0.1 if kind == "smoothed" else 0.0)


def _deviation(optimiser: Any, model: nn.Module) -> Mapping[str, Tensor] | None:
    return optimiser.posterior(model).deviation if isinstance(optimiser, IVON) else None


def _batch(key: int, size: int, batch: int, step: int) -> Tensor | None:
    return None if batch >= size else integers(key, size, (batch,), step)


def _own_settings(phase: Phase, num_rows: int) -> dict[str, Any]:
    settings = dict(phase.settings)
    if phase.optimiser == "ivon":
        settings.setdefault("ess", float(num_rows))
    return settings
