"""Where a run computes."""

from typing import Literal

import torch

from epigrok.errors import UserError

DeviceName = Literal["auto", "cpu", "cuda"]


def choose_device(name: DeviceName) -> torch.device:
    """The device called `name`; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' asked for, but this machine offers no CUDA device")
    return torch.device(name)
