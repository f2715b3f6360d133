"""`epigrok figure NAME|all DIR`: the figures of the paper, and more, from runs."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.errors import UserError
from epigrok.files import own_path
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tables import open_sweep

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class FigureArguments:
    """Draw a figure, or `all`, from a run or a sweep, finished or not.

    Each is written as PDF, SVG, PNG, CSV (the plotted data) and TXT (the caption). An
    unknown name lists those that exist.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the figure, or `all` for every figure that can be drawn."""
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""
    out: Path | None = None
    """Folder for the files; by default DIR/figures."""
    seeds_apart: bool = False
    """Show every run separately, instead of medians over runs that differ only in seeds."""
    where: tuple[str, ...] = ()
    """Only runs whose fields have these values, as in task.num_base_tasks=64 run_seed=0,1."""


def main(arguments: Sequence[str]) -> int:
    """Draw, write, and name the files."""
    parsed = parse(FigureArguments, "figure", arguments)
    # Imported here, because `epigrok figure --help` needs no matplotlib.
    from epigrok.figures.catalogue import draw_all, draw_figure
    from epigrok.figures.output import write_drawn

    directory = unpack_if_zoo(parsed.directory)
    store = open_sweep(directory, seeds_apart=parsed.seeds_apart, verified=True, where=parsed.where)
    for reason in store.left_out.values():
        warnings.warn(f"a run is left out: {reason}", stacklevel=1)
    out = own_path(directory, "figures") if parsed.out is None else parsed.out
    if parsed.name == ALL:
        drawn, missing = draw_all(store)
    else:
        drawn, missing = [draw_figure(parsed.name, store)], {}
    for figure in drawn:
        for path in write_drawn(figure, out):
            print(path)
    for name, reason in missing.items():
        print(f"{name} could not be drawn: {reason}")
    if not drawn:
        raise UserError(f"no figure could be drawn from {parsed.directory}; see the reasons above")
    return 0
