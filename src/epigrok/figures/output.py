"""A figure on disk: PDF, SVG and PNG, the plotted data as CSV, the caption as text.

Files appear complete or not at all, and the same input gives the same bytes.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from epigrok.figures.drawn_figure import DrawnFigure
from epigrok.figures.style import publication_style
from epigrok.files import make_writable_directory, write_file

_WITHOUT_DATES: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}


def write_figure(
    figure: Figure, directory: Path, name: str, table: Mapping[str, Iterable[Any]], caption: str
) -> list[Path]:
    """Write `name`.pdf, .svg, .png, .csv and .txt into `directory`, and return their paths."""
    make_writable_directory(directory)
    contents = {}
    with publication_style():
        for suffix, metadata in _WITHOUT_DATES.items():
            image = io.BytesIO()
            figure.savefig(image, format=suffix, metadata=metadata)
            contents[suffix] = image.getvalue()
            # Panels are laid out once: it takes time, and all formats show the same.
            figure.set_layout_engine("none")
    contents["csv"] = csv_text(table).encode()
    contents["txt"] = (caption.rstrip() + "\n").encode()
    paths = []
    for suffix, content in contents.items():
        path = directory / f"{name}.{suffix}"
        write_file(path, content)
        paths.append(path)
    return paths


def write_drawn(drawn: DrawnFigure, directory: Path) -> list[Path]:
    """Write a figure of the catalogue under its name."""
    return write_figure(drawn.figure, directory, drawn.name, drawn.table, drawn.caption)


def csv_text(table: Mapping[str, Iterable[Any]]) -> str:
    """Columns of equal length as CSV with a header; floats in full, NaN as an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        writer.writerow("" if isinstance(value, float) and isnan(value) else value for value in row)
    return text.getvalue()
