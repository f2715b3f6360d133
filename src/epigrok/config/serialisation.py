"""`RunConfig` to JSON and back, its run id, and the difference between two configs.

A section that can be one of several kinds carries its class name under `kind`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from math import isfinite
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from epigrok.config.checks import require
from epigrok.config.learning import ModelConfig
from epigrok.config.run import RunConfig
from epigrok.config.task import TaskConfig
from epigrok.registry import import_all_modules

_LABELS = ("preset",)
"""Fields that name a run without changing what it computes."""

_OPEN_SECTIONS = {TaskConfig: "epigrok.tasks", ModelConfig: "epigrok.model"}
"""Sections to which plugins can add kinds -> the package of the built-in kinds."""

Json = dict[str, Any]
_LARGEST = 1.7e308
"""Whole numbers beyond it have no float."""


def to_json(config: RunConfig) -> Json:
    """The complete configuration as plain JSON values."""
    return {item.name: _encode(getattr(config, item.name), item.name) for item in fields(config)}


def from_json(values: Json) -> RunConfig:
    """The configuration that `to_json` wrote.

    Unknown fields are errors, and so are missing fields without a default. Other missing fields
    take their default, so that older runs stay readable.
    """
    config: RunConfig = _decode(RunConfig, values, "config")
    return config


def run_id(config: RunConfig) -> str:
    """Twelve hexadecimal digits, a hash of everything that decides what the run computes."""
    # Read back once, so that 1 and 1.0 give the same id.
    canonical = to_json(from_json(to_json(config)))
    values = {key: value for key, value in canonical.items() if key not in _LABELS}
    text = json.dumps(values, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def differing_fields(recorded: RunConfig, asked: RunConfig) -> list[str]:
    """One line `field: recorded -> asked` for each field in which two configs differ."""
    old, new = flatten(to_json(recorded)), flatten(to_json(asked))
    return [
        f"{name}: {old.get(name)} -> {new.get(name)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) and name not in _LABELS
    ]


def flatten(values: Json, prefix: str = "") -> Json:
    """Nested sections as one level of dotted names: `optim.lr`."""
    flat: Json = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _encode(value: Any, where: str) -> Any:
    if is_dataclass(value):
        inner = {
            item.name: _encode(getattr(value, item.name), f"{where}.{item.name}")
            for item in fields(value)
        }
        return {"kind": type(value).__name__, **inner}
    is_finite = not isinstance(value, float) or isfinite(value)
    require(is_finite, f"{where} must be a finite number, got {value}")
    return list(value) if isinstance(value, tuple) else value


def _decode(kind: Any, value: Any, where: str) -> Any:
    if (kind in _OPEN_SECTIONS or isinstance(kind, UnionType)) and isinstance(value, dict):
        return _decode(_section_of(kind, value.get("kind"), where), value, where)
    if is_dataclass(kind):
        require(isinstance(value, dict), f"{where}: expected a section, got {value!r}")
        hints = get_type_hints(kind)
        known = {item.name: item for item in fields(kind)}
        unknown = value.keys() - known.keys() - {"kind"}
        require(not unknown, f"{where}: unknown fields {', '.join(sorted(unknown))}")
        missing = [
            name
            for name, item in known.items()
            if name not in value and item.default is MISSING and item.default_factory is MISSING
        ]
        require(not missing, f"{where}: missing fields {', '.join(missing)}")
        return kind(  # type: ignore[operator]
            **{
                name: _decode(hints[name], value[name], f"{where}.{name}")
                for name in known
                if name in value
            }
        )
    require(accepts(kind, value), f"{where} cannot be {value!r}")
    kinds = get_args(kind) or (kind,)
    if type(value) is int and float in kinds and int not in kinds:
        return float(value)
    return tuple(value) if get_origin(kind) is tuple else value


def _section_of(kind: Any, name: Any, where: str) -> Any:
    """The class that a section's `kind` names, from the package or a loaded plugin."""
    if kind not in _OPEN_SECTIONS:
        options = {option.__name__: option for option in get_args(kind)}
        # A tuple is searched without hashing: a file may say anything, also a list.
        require(
            name in tuple(options), f"{where}: kind {name!r} is not one of {', '.join(options)}"
        )
        return options[name]
    if name not in tuple(kind.kinds):
        # A module there may define its own settings; those in `config` are known without torch.
        import_all_modules(_OPEN_SECTIONS[kind])
    require(
        name in tuple(kind.kinds),
        f"{where}: kind {name!r} is not one of {', '.join(kind.kinds)}; if a plugin defines it, "
        "load the plugin first (--plugin FILE, or import it)",
    )
    return kind.kinds[name]


def accepts(kind: Any, value: Any) -> bool:
    """Whether a value read from JSON fits a field of type `kind`."""
    origin, options = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(accepts(option, value) for option in options)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in options)
    if origin is tuple:
        return isinstance(value, list | tuple) and _accepts_all(options, value)
    if kind is float:
        return type(value) in (int, float) and abs(value) <= _LARGEST and isfinite(value)
    return type(value) is kind and (kind is not int or abs(value) < 2**63)


def _accepts_all(kinds: tuple[Any, ...], values: Sequence[Any]) -> bool:
    kinds = (kinds[0],) * len(values) if kinds[-1] is Ellipsis else kinds
    return len(kinds) == len(values) and all(map(accepts, kinds, values))
