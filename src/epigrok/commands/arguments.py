"""Reading a command's arguments into a dataclass, with mistakes as one sentence."""

from collections.abc import Sequence
from typing import TypeVar

import tyro

from epigrok.config import preset, presets
from epigrok.errors import UserError

Arguments = TypeVar("Arguments")


def parse(
    kind: type[Arguments],
    command: str,
    arguments: Sequence[str],
    default: Arguments | None = None,
) -> Arguments:
    """Fill the dataclass `kind` from the command line; `--help` prints its fields and exits."""
    parsed: Arguments = tyro.cli(
        kind,
        prog=f"epigrok {command}",
        args=list(arguments),
        default=tyro.MISSING_NONPROP if default is None else default,
        # The default decides which kind a section is; its flags then need no subcommand.
        config=(tyro.conf.AvoidSubcommands,),
    )
    return parsed


def preset_and_rest(command: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Split off the preset's name, which decides the fields that the rest may set."""
    if not arguments or arguments[0].startswith("-"):
        names = ", ".join(presets())
        raise UserError(
            f"name a preset first: epigrok {command} PRESET …, one of {names}; "
            f"`epigrok {command} PRESET --help` lists what can be set"
        )
    name, *rest = arguments
    preset(name)
    return name, rest
