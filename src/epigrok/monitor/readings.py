"""What a look reports of each set, and where a set changed its state.

Entropies are in nats. `_se` is a standard error over rows; `_log_se` is that of the logarithm, over
rows and draws of the noise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite, nan
from typing import Any, NamedTuple

from epigrok.monitor.measuring import SetMeasure
from epigrok.monitor.standing import State
from epigrok.monitor.tolerance import ToleranceRatio

MEANS = (
    "predictability", "seen_predictability", "calibrated_epistemic", "posterior_epistemic",
    "entropy", "confidence",
)  # fmt: skip
"""What is reported with a standard error over rows."""


class Event(NamedTuple):
    """A watched set has changed its state."""

    watched: str
    state: State
    step: int


@dataclass(frozen=True, kw_only=True)
class SetReading:
    """One set at one look; its fields are the columns of tables and logs."""

    state: State | None = None
    """None for the seen set, which is what the others are compared with."""
    unreadable: str | None = None
    """Why this look changed nothing, or took an announcement back."""
    tolerance_ratio: float = nan
    """τ of this set over τ of the seen one: near 1 where a rule covers both. The noise is on the
    head, or on the whole network if the monitor was asked to put it there."""
    tolerance_ratio_log_se: float = nan
    network_ratio: float = nan
    """The same with noise on the whole network; read only where an announcement depends on it."""
    network_ratio_log_se: float = nan
    steadiness: float = nan
    """Cohen's κ between the answers and those of a look a tenth of the steps before."""
    kept: float = nan
    """The same with those of the look that was first sure of "generalised"."""
    settled_ahead: float = nan
    """By how much more of these answers than of the seen ones stood at the last look at which
    hardly any seen answer was that of now; nan where there was no such look."""
    settled_ahead_se: float = nan
    predictability: float = nan
    """Cohen's κ between the answers and what the answers to the seen inputs predict; each seen
    answer is predicted from the others."""
    predictability_se: float = nan
    seen_predictability: float = nan
    """The same for the seen answers, weighted so that each answer is as frequent as in this set."""
    seen_predictability_se: float = nan
    tolerance: float = nan
    """τ: the relative noise that leaves the answers as they are."""
    tolerance_log_se: float = nan
    calibrated_epistemic: float = nan
    """Epistemic uncertainty under noise of size τ(seen)."""
    calibrated_epistemic_se: float = nan
    posterior_epistemic: float = nan
    """Epistemic uncertainty under the posterior that was passed."""
    posterior_epistemic_se: float = nan
    entropy: float = nan
    """Of the network's own prediction."""
    entropy_se: float = nan
    confidence: float = nan
    """Mean of the highest probability."""
    confidence_se: float = nan
    chance: float = nan
    """Accuracy that guessing would have: the sum of the squared shares of the answers."""
    num_rows: int = 0


COLUMNS = tuple(field.name for field in fields(SetReading))


def set_reading(
    measure: SetMeasure, ratio: ToleranceRatio | None = None, **compared: Any
) -> SetReading:
    """What was measured, and how it compares with the seen set and with earlier looks."""
    means = {name: getattr(measure, name) for name in MEANS}
    measured: dict[str, Any] = {name: mean.value for name, mean in means.items()}
    measured |= {f"{name}_se": mean.standard_error for name, mean in means.items()}
    return SetReading(
        unreadable=measure.tolerance.reason,
        tolerance_ratio=nan if ratio is None else ratio.value,
        tolerance_ratio_log_se=nan if ratio is None else ratio.log_standard_error,
        tolerance=measure.tolerance.value,
        tolerance_log_se=measure.tolerance.log_standard_error,
        chance=measure.chance,
        num_rows=measure.num_rows,
        **measured,
        **compared,
    )


@dataclass(frozen=True, kw_only=True)
class MonitorReading:
    """One look at all sets; `reading["held out"]` is what it saw of one."""

    step: int
    sets: Mapping[str, SetReading]
    """The seen set first, then the watched ones."""
    train_accuracy: float | None = None
    train_loss: float | None = None
    seconds: float = 0.0
    """That the look took."""

    def __getitem__(self, name: str) -> SetReading:
        if name not in self.sets:
            raise KeyError(f"no set is called {name!r}; there are: {', '.join(self.sets)}")
        return self.sets[name]

    def flat(self) -> dict[str, float | str]:
        """`{"held out/tolerance_ratio": 0.12, …}` for a logger; what is not known is left out."""
        found: dict[str, float | str] = {"monitor/seconds": self.seconds}
        for name, reading in self.sets.items():
            for column, value in asdict(reading).items():
                if value is not None and (isinstance(value, str) or isfinite(value)):
                    found[f"{name}/{column}"] = value
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row of the table for each set."""
        for name, reading in self.sets.items():
            yield {
                "step": self.step,
                "set": name,
                **asdict(reading),
                "train_accuracy": self.train_accuracy,
                "train_loss": self.train_loss,
                "seconds": self.seconds,
            }
