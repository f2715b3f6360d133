"""A column of a table: its name, type, unit and meaning."""

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["integer", "number", "text", "flag"]


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    type: ColumnType
    meaning: str
    unit: str = ""
    """Empty for shares, counts and names."""
