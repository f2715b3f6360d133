"""The state of an optimiser as a safetensors file, which cannot hold anything but numbers.

Tensors are named `state.PARAMETER.NAME`, as in `state_dict()`; the settings of the parameter groups
are JSON in the file's metadata.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from epigrok.errors import UserError
from epigrok.files import write_by

_SETTINGS = "param_groups"


def save_optimiser(optimiser: Optimizer, path: Path | str) -> None:
    """Write the state of an optimiser, such as IVON, whole or not at all."""
    saved = optimiser.state_dict()
    tensors = {
        f"state.{parameter}.{name}": value.detach().contiguous()
        for parameter, state in saved["state"].items()
        for name, value in state.items()
    }
    settings = json.dumps([_plain(group) for group in saved[_SETTINGS]])
    write_by(Path(path), lambda file: save_file(tensors, file, metadata={_SETTINGS: settings}))


def load_optimiser(optimiser: Optimizer, path: Path | str) -> None:
    """Put the state that `save_optimiser` wrote into an optimiser built like the saved one."""
    state: dict[int, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            groups = json.loads((file.metadata() or {}).get(_SETTINGS, "null"))
            for key in file.keys():  # noqa: SIM118  (it is no mapping)
                _, parameter, name = key.split(".")
                state.setdefault(int(parameter), {})[name] = file.get_tensor(key)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} holds no optimiser's state: {error}") from error
    if groups is None:
        raise UserError(f"{path} holds no optimiser's state: it has no {_SETTINGS}")
    settings = [{name: _as_given(name, value) for name, value in group.items()} for group in groups]
    optimiser.load_state_dict({"state": dict(sorted(state.items())), _SETTINGS: settings})


def _plain(group: dict[str, Any]) -> dict[str, Any]:
    return {name: v.item() if isinstance(v, Tensor) else v for name, v in group.items()}


def _as_given(name: str, value: Any) -> Any:
    # JSON has no tuples, and settings such as betas are tuples.
    return tuple(value) if isinstance(value, list) and name != "params" else value
