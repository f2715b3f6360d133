"""How a monitor looks."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any, Literal, get_args

from epigrok.errors import UserError
from epigrok.monitor.rule import StateRule
from epigrok.monitor.sets.set_rows import Answered
from epigrok.monitor.tolerance import ToleranceSettings

NoiseOn = Literal["head", "network"]


@dataclass(frozen=True, kw_only=True)
class MonitorSettings:
    """How a monitor looks. The defaults are those of the benchmark in `docs/results/detection`."""

    num_rows: int = 256
    """Predictions of each set that are read, and the most inputs that are taken from it."""
    answered: Answered = "all"
    """Of a model that answers at several positions: all of them count, or each sequence's last."""
    noise_on: NoiseOn = "head"
    """Where the noise goes at every look. On the output layer a look costs one forward pass per
    set, on the whole network 44 or more. Choose the network for models whose output layer is not
    linear."""
    head: str | None = None
    """Name of the output layer, where a model has several that return the logits."""
    confirms: bool = True
    """Whether announcements are confirmed with noise on the whole network."""
    tolerance: ToleranceSettings = field(default_factory=ToleranceSettings)
    rule: StateRule = field(default_factory=StateRule)

    def __post_init__(self) -> None:
        for name, kind in (("answered", Answered), ("noise_on", NoiseOn)):
            value, known = getattr(self, name), get_args(kind)
            if value not in known:
                raise UserError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        if not isinstance(self.num_rows, Integral):
            raise UserError(f"num_rows must be a whole number, got {self.num_rows!r}")
        # NumPy's whole numbers cannot be saved.
        object.__setattr__(self, "num_rows", int(self.num_rows))
        if self.num_rows < self.tolerance.fewest_rows:
            raise UserError(
                f"num_rows {self.num_rows} is too few: below {self.tolerance.fewest_rows} the "
                "ratio cannot be read"
            )

    def require_like(self, saved: Mapping[str, Any]) -> None:
        """Refuse looks that were made with other settings, as `asdict` wrote them down."""
        before = dict(_flat(saved))
        others = [
            f"{name} was {before.get(name)!r} and is {value!r} here"
            for name, value in _flat(asdict(self))
            if before.get(name) != value
        ]
        if others:
            raise UserError(f"the saved monitor looked in another way: {'; '.join(others)}")


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
