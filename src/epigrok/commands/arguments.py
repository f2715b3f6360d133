"""Read a command's arguments into a dataclass; the error for a mistake is one line."""

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
    description: str | None = None,
) -> Arguments:
    """Fill the dataclass `kind` from the command line; `--help` prints its fields and exits.

    Args:
        kind: The dataclass.
        command: The words of the command after `epigrok`.
        arguments: What follows them.
        default: Where the values come from that no argument sets; by default the dataclass.
        description: What `--help` says first; by default the dataclass's docstring.
    """
    for flag, value in zip(["", *arguments], arguments):
        # An empty path would silently mean the current directory.
        if not value or (value.startswith("--") and value.endswith("=")):
            raise UserError(f"{value.rstrip('=') or flag or 'an argument'} has an empty value")
    parsed: Arguments = tyro.cli(
        kind,
        prog=f"epigrok {command}",
        args=list(arguments),
        description=description,
        # The default decides the kind of each section, so its flags need no subcommand.
        config=(tyro.conf.AvoidSubcommands, tyro.conf.FlagCreatePairsOff),
        default=tyro.MISSING_NONPROP if default is None else default,
    )
    return parsed


def preset_and_rest(command: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Split off the preset's name, which decides what fields the other arguments can set."""
    usage = f"epigrok {command} PRESET …, one of {', '.join(presets())}"
    hint = f"`epigrok {command} PRESET --help` lists what can be set"
    if arguments and arguments[0] in ("-h", "--help"):
        print(f"usage: {usage}\n{hint}")
        raise SystemExit(0)
    if not arguments or arguments[0].startswith("-"):
        raise UserError(f"name a preset first: {usage}; {hint}")
    name, *rest = arguments
    preset(name)
    return name, rest
