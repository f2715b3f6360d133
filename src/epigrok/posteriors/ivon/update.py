"""IVON's equations over flat buffers: the width of the posterior, a sample, an update.

Each is a pass over the buffers that can be compiled: it changes them in place, and reads what
varies from step to step from tensors.
"""

from math import inf, log

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.random_streams import normal

State = dict[str, Tensor]
"""Of one group: mean, momentum and Hessian as flat buffers, and the number of the step."""

Settings = tuple[float, float, float, float, float]
"""Effective sample size, weight decay, β₁, β₂, clip radius."""


def sigma(hessian: Float[Tensor, " N"], ess: float, weight_decay: float) -> Float[Tensor, " N"]:
    """Standard deviation of the posterior."""
    return torch.rsqrt(ess * (hessian + weight_decay))


def perturb(
    live: Tensor, deviation: Tensor, state: State, settings: tuple[float, float], key: int
) -> None:
    """Set the live weights to a sample of this step; `deviation` is how far it is from the mean."""
    ess, weight_decay = settings
    noise = normal(key, (live.shape[0],), state["step"], live.device)
    sample = state["mean"] + sigma(state["hessian"], ess, weight_decay) * noise
    live.copy_(sample)
    # Of the exact sample: narrow live weights round it, and the Hessian must not see that.
    deviation.copy_(sample - state["mean"])


def update(
    sampled: tuple[Tensor, Tensor, Tensor], state: State, lr: Tensor, settings: Settings
) -> None:
    """Move the posterior, given the live weights, a gradient, and the deviation it was taken at."""
    live, gradient, deviation = sampled
    ess, weight_decay, beta_1, beta_2, clip_radius = settings
    mean, hessian = state["mean"], state["hessian"]
    gradient = gradient.to(mean.dtype)
    state["step"].add_(1)
    momentum = beta_1 * state["momentum"] + (1.0 - beta_1) * gradient
    # 1 - β₁ᵗ, which as it stands would lose digits in single precision for β₁ close to one.
    log_beta_1 = log(beta_1) if beta_1 > 0.0 else -inf
    correction = -torch.expm1(state["step"].to(mean.dtype) * log_beta_1)
    precision = hessian + weight_decay
    estimate = ess * precision * (deviation * gradient)
    difference = (1.0 - beta_2) * (estimate - hessian)
    hessian_new = hessian + difference + 0.5 * difference.square() / precision
    direction = (momentum / correction + weight_decay * mean) / (hessian_new + weight_decay)
    mean_new = mean - lr * direction.clamp(-clip_radius, clip_radius)
    state["momentum"].copy_(momentum)
    hessian.copy_(hessian_new)
    mean.copy_(mean_new)
    live.copy_(mean_new)
