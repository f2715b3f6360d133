"""`epigrok zoo`: the trained runs that come with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.extras import install_command
from epigrok.records.zoo import EXTRA, PREFIX, UNPACKED, is_installed, zoo_card, zoo_names


@dataclass(frozen=True, kw_only=True)
class ZooArguments:
    """List the trained runs that come with the package, or show the card of one."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = ""
    """The run whose card to show."""


def main(arguments: Sequence[str]) -> int:
    """List, or show a card."""
    name = parse(ZooArguments, "zoo", arguments).name.removeprefix(PREFIX)
    if name:
        print(zoo_card(name))
        return 0
    for entry in zoo_names():
        title = zoo_card(entry).splitlines()[0].lstrip("# ")
        print(f"{PREFIX}{entry:<12}{title}")
        if not is_installed(entry):
            print(f"{'':<16}only its card is installed; {install_command(EXTRA)} adds the run")
    print(
        f"\n`epigrok zoo NAME` shows the card of one: data, recipe, fate, licence;\n"
        f"`epigrok evaluate {PREFIX}NAME --series context-noise` copies one to {UNPACKED}/NAME "
        "and evaluates it;\n`figure`, `status` and `report` then take that directory"
    )
    return 0
