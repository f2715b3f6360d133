"""`epigrok presets`: the shipped recipes."""

from collections.abc import Sequence
from dataclasses import dataclass

from epigrok.commands.arguments import parse
from epigrok.config.presets import PRESETS


@dataclass(frozen=True)
class PresetsArguments:
    """List the shipped presets."""


def main(arguments: Sequence[str]) -> int:
    """Print a line for each preset."""
    parse(PresetsArguments, "presets", arguments)
    width = max(map(len, PRESETS)) + 2
    for name, make in PRESETS.items():
        summary = (make.__doc__ or "").strip().splitlines()[0]
        print(f"{name:<{width}}{summary}")
    return 0
