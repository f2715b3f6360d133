"""Parameters and gradients as views into one buffer each, whose addresses never change."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.errors import UserError


class FlatParameters:
    """Owns the storage of some parameters and of their gradients."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        kinds = {(parameter.dtype, parameter.device) for parameter in parameters}
        # A sum of small changes needs the digits: in bfloat16 a Hessian average stands still.
        if len(kinds) != 1 or next(iter(kinds))[0] not in (torch.float32, torch.float64):
            raise UserError(
                "parameters of one group must share a device and be float32 or float64, "
                f"got {kinds}"
            )
        self._parameters = list(parameters)
        self.live = torch.cat([p.detach().flatten() for p in parameters])
        self.gradient = torch.zeros_like(self.live)
        self._gradient_views = self.views_of(self.gradient)
        self._live_views = self.views_of(self.live)
        for parameter, view in zip(parameters, self._live_views):
            parameter.data = view
        self.zero_gradients()

    def views_of(self, flat: Float[Tensor, " N"]) -> list[Tensor]:
        """A flat buffer cut into the parameters' shapes."""
        parts = flat.split([parameter.numel() for parameter in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters)]

    def require_attached(self) -> None:
        """Refuse to go on without the parameters: moving or converting a model takes them away."""
        # Addresses are compared on the host, so a captured step does not wait for the device.
        for parameter, view in zip(self._parameters, self._live_views):
            if parameter.data_ptr() != view.data_ptr():
                raise UserError(
                    "the model was moved or converted after its optimiser was built; "
                    "build the optimiser after moving the model"
                )

    def zero_gradients(self) -> None:
        """Clear all gradients and make `.grad` look into the buffer."""
        self.gradient.zero_()
        for parameter, view in zip(self._parameters, self._gradient_views):
            parameter.grad = view

    def gather_gradients(self) -> None:
        """Bring gradients into the buffer that somebody detached from it."""
        for parameter, view in zip(self._parameters, self._gradient_views):
            if parameter.grad is view:
                continue
            if parameter.grad is None:
                view.zero_()
            elif parameter.grad.data_ptr() != view.data_ptr():
                view.copy_(parameter.grad)
            parameter.grad = view
