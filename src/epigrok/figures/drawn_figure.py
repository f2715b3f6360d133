"""A figure of the catalogue: its panels, a caption with numbers, and the plotted data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure
from numpy.typing import NDArray


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that can be written to disk or put into a report."""

    name: str
    """Name of its files, and its anchor on a page."""
    title: str
    """One line."""
    caption: str
    """Plain text with the measured numbers."""
    figure: Figure
    table: Mapping[str, Sequence[Any]]
    """The plotted data: column -> values."""

    def __repr__(self) -> str:
        """Name and caption."""
        return f"DrawnFigure({self.name!r}: {self.caption})"

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        image = BytesIO()
        self.figure.savefig(image, format="png")
        return image.getvalue()


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns; a missing value becomes NaN."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, float("nan")) for row in rows] for name in names}


def listed(table: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Turn columns from arrays into lists."""
    return {name: column.tolist() for name, column in table.items()}
