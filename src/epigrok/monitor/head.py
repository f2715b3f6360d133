"""The output head of a network, and what arrives at it: found by watching one forward pass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

Forward = Callable[[Any, Any], Tensor]
"""Calls a model on inputs and returns its logits, the classes in the last dimension."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """A linear map from features to logits."""

    weight_CD: Float[Tensor, "C D"]
    bias_C: Float[Tensor, " C"] | None = None


@dataclass(frozen=True, kw_only=True)
class HeadInputs:
    """Features of N inputs, and the head that answers them."""

    features_ND: Float[Tensor, "N D"]
    head: Head

    def logits(self) -> Float[Tensor, "N C"]:
        """The network's own logits."""
        return linear(self.features_ND, self.head.weight_CD, self.head.bias_C)


@torch.no_grad()
def head_inputs(model: nn.Module, inputs: Any, forward: Forward | None = None) -> HeadInputs:
    """The features that reach `model`'s head on `inputs`, its last linear layer.

    The model is run once, in evaluation mode, and left in the mode it was in. Every position of a
    sequence is a row. A model whose output is not what its last linear layer returned (because it
    caps or scales the logits afterwards) is refused: noise on that layer would be read wrongly.
    """
    calls: list[tuple[nn.Linear, Tensor, Tensor]] = []

    def remember(layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Linear)
        calls.append((layer, args[0], output))

    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    hooks = [layer.register_forward_hook(remember) for layer in layers]
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        logits = forward(model, inputs) if forward else model(inputs)
    finally:
        for hook in hooks:
            hook.remove()
        for module, was_training in modes:
            module.training = was_training
    if not calls:
        raise ValueError("the model called no linear layer, so it has no head to add noise to")
    layer, features, output = calls[-1]
    # A network may return some positions only; then the hook saw more rows than came out.
    if output.shape != logits.shape or not torch.allclose(output, logits, equal_nan=True):
        raise ValueError("the model's output is not that of its last linear layer")
    # Copies: the optimiser changes the weights in place.
    bias = None if layer.bias is None else layer.bias.detach().float().clone()
    return HeadInputs(
        features_ND=features.detach().float().flatten(0, -2),
        head=Head(weight_CD=layer.weight.detach().float().clone(), bias_C=bias),
    )
