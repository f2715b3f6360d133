"""Change fields of a configuration by their dotted names: `{"optim.lr": 1e-3}`."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints

from epigrok.config.checks import require
from epigrok.config.run import RunConfig
from epigrok.config.serialisation import accepts, from_json, to_json


def with_fields(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Make all `changes` at once, then check the new configuration as a whole."""
    if not changes:
        return config
    values = to_json(config)
    for name, value in changes.items():
        *sections, field = name.split(".")
        _require_field(config, name, value)
        inner = values
        for section in sections:
            inner = inner[section]
        inner[field] = value
    return from_json(values)


def dotted_names(*written: Mapping[str, Any]) -> dict[str, Any]:
    """Changes under the names of fields, from names of the command line and of keywords."""
    changes: dict[str, Any] = {}
    for name, value in (item for mapping in written for item in mapping.items()):
        field = name.replace("__", ".").replace("-", "_")
        require(
            field not in changes,
            f"{field} is given twice, as {changes.get(field)!r} and as {value!r}",
        )
        changes[field] = value
    return changes


def _require_field(config: RunConfig, name: str, value: Any) -> None:
    """Refuse a field that does not exist, is a whole section, or takes another kind of value."""
    *sections, field = name.split(".")
    owner: Any = config
    for section in sections:
        owner = getattr(owner, section, None)
    hints = get_type_hints(type(owner)) if is_dataclass(owner) else {}
    require(
        field in hints and name != "preset",
        f"preset {config.preset!r} has no field {name!r}"
        + (f"; {'.'.join(sections) or 'a run'} has {', '.join(hints)}" if hints else ""),
    )
    require(
        not is_dataclass(getattr(owner, field)),
        f"{name!r} is a section; name one of its fields, as in '{name}."
        f"{next(iter(get_type_hints(type(getattr(owner, field)))), '')}'",
    )
    require(accepts(hints[field], value), f"{name} cannot be {value!r}")
