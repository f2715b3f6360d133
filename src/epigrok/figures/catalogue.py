"""Every figure by its name, drawn from the tables of a run or a sweep.

A figure is one file with a function that takes the store and returns a `DrawnFigure`:

    @register_figure("mine", "what it shows")
    def draw_mine(store: SweepStore) -> DrawnFigure: …
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from epigrok.errors import UserError
from epigrok.figures.drawn_figure import DrawnFigure
from epigrok.registry import Registry
from epigrok.tables.store import SweepStore, open_sweep

Draw = Callable[[SweepStore], DrawnFigure]


@runtime_checkable
class HasDirectory(Protocol):
    """Something with results in a directory, such as `epigrok.open_run` gives."""

    @property
    def path(self) -> Path:
        """The directory."""
        ...


Source = SweepStore | HasDirectory | Path | str
"""Where a figure's data comes from."""

_LAST = 1000


@dataclass(frozen=True)
class CatalogueEntry:
    """A figure that can be drawn."""

    build: Draw
    summary: str
    """One line on what it shows."""
    place: int
    """A report shows figures in order of their places."""
    shows_runs: bool
    """Whether it shows the runs in the directory; theory is the same for all."""


_FIGURES: Registry[CatalogueEntry] = Registry("figure", home="epigrok.figures")
_Draw = TypeVar("_Draw", bound=Draw)


def register_figure(
    name: str, summary: str, place: int = _LAST, shows_runs: bool = True
) -> Callable[[_Draw], _Draw]:
    """Register the decorated function as the one that draws the figure `name`."""

    def register(draw: _Draw) -> _Draw:
        _FIGURES.add(name, CatalogueEntry(draw, summary, place, shows_runs))
        return draw

    return register


def figures() -> dict[str, str]:
    """Name -> what it shows, in the order of a report."""
    entries = sorted(_FIGURES.entries().items(), key=lambda item: (item[1].place, item[0]))
    return {name: entry.summary for name, entry in entries}


def draw_figure(name: str, source: Source) -> DrawnFigure:
    """Draw one figure; if its data is missing, the error says how to make it.

    Args:
        name: One of `figures()`.
        source: A run, a sweep, or the directory of either.
    """
    store = _store_of(source)
    entry = _FIGURES.find(name)
    drawn = entry.build(store)
    if store.chosen_by and entry.shows_runs:
        drawn = replace(drawn, caption=f"{drawn.caption} Only runs with {store.chosen_by}.")
    return drawn


def draw_all(source: Source) -> tuple[list[DrawnFigure], dict[str, str]]:
    """Draw all figures that can be drawn, and give the reason for each of the others.

    A figure that fails for a reason that is no user's mistake is one of the others, with a warning.
    """
    store = _store_of(source)
    drawn: list[DrawnFigure] = []
    missing: dict[str, str] = {}
    for name in figures():
        try:
            drawn.append(draw_figure(name, store))
        except UserError as error:
            missing[name] = str(error)
        except Exception as error:
            # A mistake of ours or of a plugin. It must not cost the other figures, nor stay unseen.
            missing[name] = f"{type(error).__name__}: {error}"
            hint = f"`epigrok figure {name} {store.path}` shows where"
            warnings.warn(f"{name} failed with {missing[name]}; {hint}", stacklevel=1)
    return drawn, missing


def _store_of(source: Source) -> SweepStore:
    if isinstance(source, SweepStore):
        return source
    return open_sweep(source if isinstance(source, str | Path) else source.path)
