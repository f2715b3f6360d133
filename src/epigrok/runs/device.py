"""Where a run computes."""

from typing import TYPE_CHECKING, Literal

from epigrok.errors import UserError

if TYPE_CHECKING:
    import torch

DeviceName = Literal["auto", "cpu", "cuda"]


def choose_device(name: DeviceName) -> "torch.device":
    """The device called `name`; `auto` is a GPU where there is one."""
    # Here and not above: to name a device needs no torch.
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' asked for, but this machine offers no CUDA device")
    return torch.device(name)
