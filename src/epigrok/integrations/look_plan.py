"""When a callback lets the monitor look, what it tells it, and when it stops training."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, get_args

from epigrok.errors import UserError
from epigrok.monitor.monitor import GrokMonitor
from epigrok.monitor.readings import MonitorReading
from epigrok.monitor.standing import State


@dataclass(frozen=True, kw_only=True)
class LookPlan:
    """How a callback uses its monitor."""

    every: int = 100
    """Steps between looks."""
    train_accuracy: str | None = None
    """Name under which the loop logs its training accuracy."""
    train_loss: str | None = None
    """Name under which it logs its training loss. Without either, confidence on seen inputs decides
    whether the training set is fitted."""
    stop_when: State | None = None
    """State in which training stops, once all watched sets are in it."""
    _warned: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Names of which it has said that nothing is logged under them."""

    def __post_init__(self) -> None:
        if not isinstance(self.every, Integral) or self.every < 1:
            raise UserError(f"every must be a whole number of steps from 1 on, got {self.every!r}")
        if self.stop_when not in (None, *get_args(State)):
            known = ", ".join(get_args(State))
            raise UserError(f"stop_when must be one of {known}, got {self.stop_when!r}")

    def is_due(self, monitor: GrokMonitor, step: int) -> bool:
        """Whether it is time to look; a step is looked at once."""
        is_new = not monitor.readings or step > monitor.readings[-1].step
        return is_new and step % self.every == 0

    def look(
        self, monitor: GrokMonitor, step: int, logged: Mapping[str, Any]
    ) -> MonitorReading | None:
        """Look if it is time to."""
        if not self.is_due(monitor, step):
            return None
        wanted = {"train_accuracy": self.train_accuracy, "train_loss": self.train_loss}
        names = {sign: name for sign, name in wanted.items() if name is not None}
        for name in names.values():
            self._warn_of_nothing(name, monitor, logged)
        return monitor.update(step, **{sign: logged.get(name) for sign, name in names.items()})

    def stops(self, monitor: GrokMonitor) -> bool:
        """Whether training should stop now."""
        return set(monitor.states.values()) == {self.stop_when}

    def _warn_of_nothing(self, name: str, monitor: GrokMonitor, logged: Mapping[str, Any]) -> None:
        """Say once, from the second look on, that the loop logs other names but not this one."""
        if name in logged or name in self._warned or not monitor.readings:
            return
        ours = {"step", "epoch", *monitor.readings[-1].flat()}
        if others := sorted(logged.keys() - ours):
            self._warned.add(name)
            warnings.warn(
                f"nothing has been logged as {name!r}, so the monitor does without it; there are: "
                f"{', '.join(others)}",
                stacklevel=2,
            )
