"""The device that a run computes on."""

from typing import TYPE_CHECKING, Literal

from epigrok.errors import UserError

if TYPE_CHECKING:
    import torch

DeviceName = Literal["auto", "cpu", "cuda"]


def choose_device(name: DeviceName) -> "torch.device":
    """The device called `name`; `auto` is a GPU where there is one."""
    # Imported here, because the command line names devices without torch.
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda': this machine has no CUDA device; choose cpu or auto")
    return torch.device(name)
