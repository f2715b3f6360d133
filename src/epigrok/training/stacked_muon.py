"""Muon that orthogonalises all matrices together: a few large kernels, not hundreds of small ones.

Matrices whose shorter sides are equal make one stack. The rest of their longer sides is filled with
zeros, which stay zero and change nothing: the products with a matrix's own transpose are the same.

It makes the update of `torch.optim.Muon` with its defaults, Nesterov momentum and the original
scaling, and keeps the same state, so that either can resume a checkpoint of the other.
The learning rate may live on the device, so that a captured step stays valid.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
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
            of_side: dict[int, list[Tensor]] = defaultdict(list)
            for weights in group["params"]:
                if weights.grad is not None:
                    of_side[min(weights.shape)].append(weights)
            for matrices in of_side.values():
                self._move(matrices, group)
        return loss

    def _move(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [weights.grad for weights in matrices if weights.grad is not None]
        momenta = [self._momentum(weights) for weights in matrices]
        torch._foreach_lerp_(momenta, gradients, 1.0 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        directions = orthogonalised(
            ahead, group["ns_coefficients"], group["ns_steps"], group["eps"]
        )
        lr = group["lr"]
        scales = [sqrt(max(1.0, weights.shape[0] / weights.shape[1])) for weights in matrices]
        torch._foreach_mul_(directions, scales)
        torch._foreach_mul_(directions, lr)
        torch._foreach_mul_(matrices, 1.0 - lr * group["weight_decay"])
        torch._foreach_sub_(matrices, directions)

    def _momentum(self, weights: Tensor) -> Tensor:
        state = self.state[weights]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(weights)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


def orthogonalised(
    matrices: Sequence[Float[Tensor, "_ _"]],
    coefficients: tuple[float, float, float],
    num_steps: int,
    eps: float,
) -> list[Float[Tensor, "_ _"]]:
    """Each matrix with its singular values pushed towards one, by Newton-Schulz in bfloat16.

    The shorter sides of all matrices must be equal.
    """
    linear, cubic, quintic = coefficients
    of_shape: dict[torch.Size, list[int]] = defaultdict(list)
    for index, matrix in enumerate(matrices):
        of_shape[matrix.shape].append(index)
    numbers = [len(indices) for indices in of_shape.values()]
    short, longest = min(matrices[0].shape), max(max(shape) for shape in of_shape)
    x = matrices[0].new_zeros(len(matrices), short, longest, dtype=torch.bfloat16)
    for part, (shape, indices) in zip(x.split(numbers), of_shape.items()):
        _of_shape(part, shape).copy_(torch.stack([matrices[index] for index in indices]))
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(eps)
    for _ in range(num_steps):
        gram = x @ x.mT
        gram = torch.baddbmm(gram, gram, gram, beta=cubic, alpha=quintic)
        x = torch.baddbmm(x, gram, x, beta=linear)
    results = list(matrices)
    for part, (shape, indices) in zip(x.split(numbers), of_shape.items()):
        found = _of_shape(part, shape).to(matrices[0].dtype, memory_format=torch.contiguous_format)
        for index, result in zip(indices, found):
            results[index] = result
    return results


def _of_shape(stacked: Tensor, shape: torch.Size) -> Tensor:
    """Without the zeros at their ends, and upright again if that is how they came."""
    filled = stacked[:, :, : max(shape)]
    return filled.mT if shape[0] > shape[1] else filled
