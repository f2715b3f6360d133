"""A dataclass of tensors as one file: the safetensors format, with the rest as JSON in its header.

Fields are tensors, mappings, sequences, numbers, texts, or such dataclasses again. Nothing is
unpickled, and only the classes that the reader offers are made.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from epigrok.errors import UserError
from epigrok.files import write_by


def write_record(record: Any, path: Path | str, format_name: str) -> None:
    """Write a dataclass to one file, whole or not at all."""
    tensors: dict[str, Tensor] = {}
    described = _described(record, "", tensors)
    header = {"format": format_name, "record": json.dumps(described)}
    try:
        write_by(Path(path), lambda file: save_file(tensors, file, header))
    except (SafetensorError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot write {path}: {reason}") from error


def read_record(
    path: Path | str,
    format_name: str,
    classes: Mapping[str, Any],
    device: torch.device | str = "cpu",
) -> Any:
    """The dataclass that was written to `path`, made of some of `classes`."""
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            header = file.metadata() or {}
            if header.get("format") != format_name:
                raise UserError(f"{path} is not a file of the format {format_name}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return _restored(json.loads(header["record"]), tensors, classes)


def _described(value: Any, place: str, tensors: dict[str, Tensor]) -> Any:
    """`value` as JSON; its tensors are put into `tensors`, each under its place."""
    if isinstance(value, Tensor):
        # A file wants each tensor on its own; weights may be views into one buffer.
        tensors[place] = value.detach().clone().contiguous()
        return {"tensor": place}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"class": type(value).__name__, "fields": _entries(named, place, tensors)}
    if isinstance(value, Mapping):
        return {"mapping": _entries(value, place, tensors)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [_described(part, f"{place}/{i}", tensors) for i, part in enumerate(value)]
        return {"sequence": parts}
    return value


def _entries(named: Mapping[str, Any], place: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    return {
        name: _described(value, f"{place}/{name}".lstrip("/"), tensors)
        for name, value in named.items()
    }


def _restored(described: Any, tensors: Mapping[str, Tensor], classes: Mapping[str, Any]) -> Any:
    if not isinstance(described, dict):
        return described
    if "tensor" in described:
        return tensors[described["tensor"]]
    if "dtype" in described:
        return getattr(torch, described["dtype"])
    if "sequence" in described:
        return tuple(_restored(part, tensors, classes) for part in described["sequence"])
    entries = described["mapping"] if "mapping" in described else described["fields"]
    values = {name: _restored(value, tensors, classes) for name, value in entries.items()}
    if "mapping" in described:
        return values
    if described["class"] not in classes:
        raise UserError(
            f"this version has no {described['class']!r} to read from a file; if the class is your "
            "own, pass it in `classes`"
        )
    return classes[described["class"]](**values)
