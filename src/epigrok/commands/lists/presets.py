"""`epigrok presets`: the shipped recipes."""

from collections.abc import Sequence
from dataclasses import dataclass

from epigrok.commands.arguments import parse
from epigrok.config.presets import presets, summary_of_preset


@dataclass(frozen=True)
class PresetsArguments:
    """List the shipped presets."""


def main(arguments: Sequence[str]) -> int:
    """Print a line for each preset."""
    parse(PresetsArguments, "presets", arguments)
    width = max(map(len, presets())) + 2
    for name in presets():
        print(f"{name:<{width}}{summary_of_preset(name)}")
    return 0
