"""Files that describe a sweep: JSON, or TOML with comments; the same entries and checks in both.

TOML reads `optim.lr = 1` as a table within a table. Here it is the field `optim.lr`, so the fields
of axes, overrides and conditions may be written with quotes or without.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from epigrok.errors import UserError
from epigrok.files import read_json, read_regular
from epigrok.sweeps.description import Sweep, sweep_from_json

TOML = ".toml"
EXAMPLE = Path(__file__).with_name("example.toml")
"""What `epigrok init` writes."""
_FIELDS = ("axes", "overrides")
_CONDITION = ("where", "set")


def read_sweep(path: Path) -> Sweep:
    """The sweep described in a TOML file, if its name ends in .toml, or in a JSON file."""
    is_toml = path.suffix == TOML
    try:
        values = _read_toml(path) if is_toml else read_json(path, object_pairs_hook=_without_twins)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid {'TOML' if is_toml else 'JSON'}: {error}") from error
    try:
        return sweep_from_json(
            {"name": path.stem, **values} if isinstance(values, dict) else values
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _read_toml(path: Path) -> dict[str, Any]:
    values = tomllib.loads(read_regular(path).decode())
    for name in _FIELDS:
        if isinstance(values.get(name), dict):
            values[name] = _without_twins(_dotted(values[name]))
    conditions = values.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        for name in _CONDITION:
            if isinstance(condition, dict) and isinstance(condition.get(name), dict):
                condition[name] = _without_twins(_dotted(condition[name]))
    return values


def _dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables under dotted names."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _without_twins(pairs: list[tuple[str, Any]] | Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Names and values, in which nothing may be said twice: one would be lost."""
    pairs = list(pairs)
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(map(repr, twice))} is there twice")
    return dict(pairs)
