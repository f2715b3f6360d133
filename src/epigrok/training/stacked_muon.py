"""Muon that orthogonalises all matrices of one shape together: a few large kernels, not hundreds.

It makes the update of `torch.optim.Muon` with its defaults, Nesterov momentum and the original
scaling, and keeps the same state, so that either can resume a checkpoint of the other.
The learning rate may live on the device, so that a captured step stays valid.
"""

from collections import defaultdict
from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Muon


class StackedMuon(Muon):
    """Orthogonalised momentum (Jordan et al. 2024) on the matrices of a network's blocks."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every matrix that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            of_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for weights in group["params"]:
                if weights.grad is not None:
                    of_shape[weights.shape].append(weights)
            for shape, matrices in of_shape.items():
                self._move(matrices, sqrt(max(1.0, shape[0] / shape[1])), group)
        return loss

    def _move(self, matrices: list[Tensor], scale: float, group: dict[str, Any]) -> None:
        gradients = [weights.grad for weights in matrices if weights.grad is not None]
        momenta = [self._momentum(weights) for weights in matrices]
        torch._foreach_lerp_(momenta, gradients, 1.0 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        direction = orthogonalised(
            torch.stack(ahead), group["ns_coefficients"], group["ns_steps"], group["eps"]
        )
        lr = group["lr"]
        torch._foreach_mul_(matrices, 1.0 - lr * group["weight_decay"])
        torch._foreach_sub_(matrices, list((scale * lr * direction.float()).unbind()))

    def _momentum(self, weights: Tensor) -> Tensor:
        state = self.state[weights]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(weights)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


def orthogonalised(
    matrices: Float[Tensor, "n rows columns"],
    coefficients: tuple[float, float, float],
    num_steps: int,
    eps: float,
) -> Float[Tensor, "n rows columns"]:
    """Each matrix with its singular values pushed towards one, by Newton-Schulz in bfloat16."""
    linear, cubic, quintic = coefficients
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.bfloat16()
    x = x.mT if is_tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(eps)
    for _ in range(num_steps):
        gram = x @ x.mT
        gram = torch.baddbmm(gram, gram, gram, beta=cubic, alpha=quintic)
        x = torch.baddbmm(x, gram, x, beta=linear)
    return x.mT if is_tall else x
