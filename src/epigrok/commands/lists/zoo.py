"""`epigrok zoo`: the trained runs that come with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.records.zoo import PREFIX, UNPACKED, zoo_card, zoo_names


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
        print(f"{PREFIX}{entry:<20}{title}")
    print(
        f"\n`epigrok evaluate {PREFIX}NAME --series context-noise` copies one to {UNPACKED}/NAME "
        "and evaluates it;\n`figure`, `status` and `report` then take that directory"
    )
    return 0
