"""Choosing runs by the values of their fields: `task.num_base_tasks=64 task.train_fraction=0.8`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epigrok.errors import UserError

FlatConfig = Mapping[str, Any]
"""A configuration under dotted names."""


@dataclass(frozen=True)
class Where:
    """Conditions on fields, all of which a chosen run meets."""

    values: Mapping[str, tuple[str, ...]]
    """Dotted field -> the values it may have, as they were written."""

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Where":
        """Read conditions such as `optim.lr=0.3` or, for any of several values, `run_seed=0,1`.

        Numbers, true, false, null and lists are written as in JSON.
        """
        values: dict[str, tuple[str, ...]] = {}
        for text in texts:
            name, equals, right = text.partition("=")
            if not (name and equals and right):
                raise UserError(f"{text!r} is not a condition; write FIELD=VALUE, as in run_seed=0")
            if name in values:
                raise UserError(
                    f"{name} is given twice; for any of several values write {name}=A,B"
                )
            values[name] = _alternatives(right)
        return cls(values)

    @property
    def text(self) -> str:
        """The conditions in words; empty if there are none."""
        return ", ".join(f"{name} = {' or '.join(values)}" for name, values in self.values.items())

    def matches(self, config: FlatConfig) -> bool:
        """Whether a run meets the conditions."""
        return all(
            any(_is_same(config.get(name), value) for value in values)
            for name, values in self.values.items()
        )

    def choose(self, configs: Sequence[FlatConfig]) -> list[FlatConfig]:
        """The runs that meet all conditions; there must be at least one."""
        known = {name for config in configs for name in config}
        for name, values in self.values.items():
            if name not in known:
                raise UserError(
                    f"no run has a field {name!r}; there are: {', '.join(sorted(known))}"
                )
            present = {repr(config.get(name)): config.get(name) for config in configs}
            if not any(_is_same(here, value) for here in present.values() for value in values):
                there = ", ".join(map(_written, present.values()))
                asked = " or ".join(values)
                raise UserError(f"no run has {name} = {asked}; there are: {there}")
        chosen = [config for config in configs if self.matches(config)]
        if not chosen:
            raise UserError(f"no run has all of {self.text}")
        return chosen


def _alternatives(text: str) -> tuple[str, ...]:
    """The values between commas; the commas in a list, such as `["point","ivon"]`, are its own."""
    if text.startswith("["):
        try:
            return tuple(map(_written, json.loads(f"[{text}]")))
        except (ValueError, RecursionError):
            pass
    return tuple(text.split(","))


def _written(value: Any) -> str:
    """A value as a condition names it."""
    return value if isinstance(value, str) else json.dumps(value)


def _is_same(here: Any, text: str) -> bool:
    """Whether a value of a configuration is the written one."""
    # First as it stands: the id 123456789012 is a text, and so is 641702862e98.
    if isinstance(here, str) and here == text:
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    # In Python True equals 1, in a configuration it does not.
    return bool(here == value) and isinstance(here, bool) == isinstance(value, bool)
