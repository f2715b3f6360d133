"""Parameters and gradients as views into one buffer each, whose addresses never change."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.errors import UserError


@dataclass
class GradientWatch:
    """Notices backward passes that reach the parameters outside of a sample."""

    is_expecting: bool = False
    saw_unexpected: bool = False

    def __call__(self, parameter: Tensor) -> None:
        """Called by autograd after it has added to the gradient of a parameter."""
        del parameter
        if not self.is_expecting:
            self.saw_unexpected = True


class FlatParameters:
    """Owns the storage of some parameters and of their gradients."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        kinds = {(parameter.dtype, parameter.device) for parameter in parameters}
        if len(kinds) != 1 or not next(iter(kinds))[0].is_floating_point:
            raise UserError(
                "parameters of one group must share a device and a floating-point type, "
                f"got {kinds}; give each kind a group of its own"
            )
        self._parameters = list(parameters)
        self.live = torch.cat([p.detach().flatten() for p in parameters])
        self.gradient = torch.zeros_like(self.live)
        self.watch = GradientWatch()
        self._gradient_views = self.views_of(self.gradient)
        self._live_views = self.views_of(self.live)
        for parameter, view in zip(parameters, self._live_views):
            parameter.data = view
            parameter.register_post_accumulate_grad_hook(self.watch)
        self.zero_gradients()

    @property
    def wide_dtype(self) -> torch.dtype:
        """The parameters' type or float32: narrower types would round small changes away."""
        return torch.promote_types(self.live.dtype, torch.float32)

    def views_of(self, flat: Float[Tensor, " N"]) -> list[Tensor]:
        """A flat buffer cut into the parameters' shapes."""
        parts = flat.split([parameter.numel() for parameter in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters)]

    def copy_parameters_to(self, wide: Float[Tensor, " N"]) -> None:
        """Copy the parameters; where they are what `wide` rounds to, it keeps its digits."""
        if wide.dtype == self.live.dtype:
            wide.copy_(self.live)
        else:
            wide.copy_(torch.where(self.live == wide.to(self.live.dtype), wide, self.live))

    def require_attached(self) -> None:
        """Refuse to go on if the parameters left the buffer: the model was moved or converted."""
        # Addresses are compared on the host, so a captured step does not wait for the device.
        for parameter, view in zip(self._parameters, self._live_views):
            if parameter.data_ptr() != view.data_ptr():
                raise UserError(
                    "the model was moved or converted after its optimiser was built; "
                    "build the optimiser after moving the model"
                )

    def require_trainable(self) -> None:
        """Refuse parameters that somebody froze: decay and noise would change them all the same."""
        if not all(parameter.requires_grad for parameter in self._parameters):
            raise UserError(
                "a parameter was frozen after its optimiser was built; "
                "build the optimiser after freezing"
            )

    @property
    def are_gradients_gone(self) -> bool:
        """Whether somebody cleared the gradients by removing them, as `model.zero_grad` does."""
        return all(parameter.grad is None for parameter in self._parameters)

    def has_unexpected_gradients(self) -> bool:
        """Whether a backward pass outside of a sample has left gradients behind."""
        # The values are looked at after such a pass only: that waits for the device.
        return self.watch.saw_unexpected and any(
            p.grad is not None and bool(p.grad.any()) for p in self._parameters
        )

    def zero_gradients(self) -> None:
        """Clear all gradients and make `.grad` look into the buffer."""
        self.gradient.zero_()
        self.watch.saw_unexpected = False
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
