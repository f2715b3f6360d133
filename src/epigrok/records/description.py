"""`run.json`: what a reader must know of a run to read its tables, without torch or plugins."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from epigrok.columns import Column, ColumnType
from epigrok.config import Split
from epigrok.errors import UserError
from epigrok.records.manifest import DESCRIPTION

__all__ = [
    "DESCRIPTION",
    "FORMAT",
    "NeededPlugin",
    "RunDescription",
    "TrackedPosterior",
    "description_from_json",
]

FORMAT = 1
"""Format number of run directories; a directory with another number is refused."""


@dataclass(frozen=True)
class TrackedPosterior:
    """A posterior that the run evaluates, as its tables show it."""

    name: str
    role: str
    """`point`, `inferred` from the data, or a `control` that does not depend on them."""
    facts: tuple[Column, ...]
    """Columns that its rows have in addition to the metrics."""


@dataclass(frozen=True)
class NeededPlugin:
    """A file outside the package without which the run cannot be trained or evaluated."""

    file: str
    digest: str
    provides: tuple[str, ...]
    """What the run uses of it: `task MyTask`, `posterior mine`."""


@dataclass(frozen=True)
class RunDescription:
    """What a run's tables hold."""

    num_classes: int
    num_examples: int
    """Examples of a sequence; 1 where there is no context."""
    splits: tuple[Split, ...]
    posteriors: tuple[TrackedPosterior, ...]
    plugins: tuple[NeededPlugin, ...]

    def missing_plugins(self) -> str:
        """The message for a run whose plugins are not loaded; empty if it needs none."""
        if not self.plugins:
            return ""
        names = " and ".join(f"{p.file} ({', '.join(p.provides)})" for p in self.plugins)
        return f"needs the plugin {names}: pass --plugin FILE, or import it first"

    def to_json(self) -> dict[str, Any]:
        """As `run.json` has it."""
        return {"format": FORMAT, **asdict(self)}


def description_from_json(values: Any, path: Path) -> RunDescription:
    """Read what `to_json` wrote; refuse anything else with one sentence."""
    number = values.get("format") if isinstance(values, dict) else None
    if number != FORMAT:
        raise UserError(
            f"{path} has format {number!r}, and this version of epigrok reads format {FORMAT}; "
            "train the run again, or open it with the version that wrote it"
        )
    try:
        return RunDescription(
            num_classes=_whole(values["num_classes"]),
            num_examples=_whole(values["num_examples"]),
            splits=tuple(map(_split, values["splits"])),
            posteriors=tuple(
                TrackedPosterior(str(p["name"]), str(p["role"]), tuple(map(_column, p["facts"])))
                for p in values["posteriors"]
            ),
            plugins=tuple(
                NeededPlugin(str(p["file"]), str(p["digest"]), tuple(map(str, p["provides"])))
                for p in values["plugins"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _split(values: dict[str, Any]) -> Split:
    split = Split(**values)
    is_text = isinstance(split.name, str) and isinstance(split.meaning, str)
    if not (is_text and type(split.tasks_seen) is type(split.inputs_seen) is bool):
        raise TypeError(f"{values!r} is no split")
    return split


def _column(values: dict[str, Any]) -> Column:
    """A column whose entries are texts, of a type that tables know."""
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError(f"{values!r} is not a column")
    if values["type"] not in get_args(ColumnType):
        raise ValueError(f"{values['type']!r} is not a type of columns")
    return Column(**values)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value
