"""The products with a model's parameters in one forward pass, and which of them gave the logits.

Every `linear(features, weight, bias)` is seen, whether a layer computes it or the model itself with
the weights of an embedding.

Letters: M rows of a product, N rows of logits, D features, C classes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from epigrok.errors import UserError


@dataclass(frozen=True, kw_only=True)
class LinearCall:
    """One product with a parameter of the model."""

    features: Float[Tensor, "*rows D"]
    output: Float[Tensor, "*rows C"]
    weight: Tensor
    bias: Tensor | None
    weight_name: str
    bias_name: str
    version: int | None
    """Of the output's memory, which counts changes made in place; None where nobody counts."""

    @property
    def is_changed(self) -> bool:
        """Whether the model changed the output in place, as `logits[:, 0] = 0` does."""
        return _version(self.output) != self.version


class LinearCalls(TorchFunctionMode):
    """Remembers products with wanted parameters, and how often each parameter was used."""

    def __init__(self, model: nn.Module, head: str | None) -> None:
        super().__init__()
        self._names = {id(weights): name for name, weights in model.named_parameters()}
        # A parameter that is shared has several names.
        named = model.named_parameters(remove_duplicate=False)
        called = {id(weights) for name, weights in named if name in (head, f"{head}.weight")}
        self._wanted = self._names.keys() if head is None else called
        self.calls: list[LinearCall] = []
        self.num_uses: Counter[str] = Counter()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        # Reading a parameter's shape or type is not using it.
        if isinstance(output, Tensor):
            values = (*args, *kwargs.values())
            self.num_uses.update(self._names[id(v)] for v in values if id(v) in self._names)
        if func is linear:
            self._remember(output, *args, **kwargs)
        return output

    def _remember(
        self, output: Tensor, input: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> None:
        if id(weight) in self._wanted and input.ndim > 1:
            self.calls.append(
                LinearCall(
                    features=input.detach(),
                    output=output.detach(),
                    weight=weight,
                    bias=bias,
                    weight_name=self._names[id(weight)],
                    bias_name=self._names.get(id(bias), ""),
                    version=_version(output),
                )
            )


def picked_rows(call: LinearCall, logits: Tensor) -> Int[Tensor, " N"] | None:
    """Which row of the head's output each row of logits is; None if they are not rows of it."""
    if call.is_changed:
        return None
    output_MC, logits_NC = call.output.flatten(0, -2).to(logits.dtype), logits.flatten(0, -2)
    if output_MC.shape[-1] != logits_NC.shape[-1]:
        return None
    if output_MC.shape == logits_NC.shape:
        is_same = output_MC.data_ptr() == logits_NC.data_ptr() or torch.allclose(
            output_MC, logits_NC, equal_nan=True
        )
        return torch.arange(len(logits_NC), device=logits.device) if is_same else None
    # Picking copies numbers, so rows are compared byte by byte.
    row_of: dict[bytes, int] = {}
    features_MD, twins = call.features.flatten(0, -2), set()
    for row, key in enumerate(_bytes_of_rows(output_MC)):
        first = row_of.setdefault(key, row)
        if not torch.allclose(features_MD[first], features_MD[row], equal_nan=True):
            twins.add(key)
    wanted = _bytes_of_rows(logits_NC)
    if not row_of.keys() >= set(wanted):
        return None
    if not twins.isdisjoint(wanted):
        raise UserError(
            f"the model picks rows of what {call.weight_name!r} returned, but different features "
            "give the same logits, so it is unclear which; use a forward= that returns all rows"
        )
    return torch.tensor([row_of[key] for key in wanted], device=logits.device)


def _bytes_of_rows(values: Float[Tensor, "N C"]) -> list[bytes]:
    return [row.tobytes() for row in values.detach().cpu().double().numpy()]


def _version(output: Tensor) -> int | None:
    return None if output.is_inference() else output._version


def how_they_differ(call: LinearCall, logits: Tensor) -> str:
    """In words, where the logits are not what a product returned."""
    layer, shape = repr(call.weight_name), list(logits.shape)
    if call.is_changed:
        return (
            f"the model changes in place what its last linear layer {layer} returned, so its "
            "output is not that of the layer; pass forward= that returns the layer's output, or "
            "name another with head="
        )
    if call.output.numel() != logits.numel() or call.output.shape[-1] != logits.shape[-1]:
        return (
            f"the logits have shape {shape} and are not rows of what the last linear layer "
            f"{layer} returned, of shape {list(call.output.shape)}; name the head with head=, or "
            "return its output with forward="
        )
    difference = (call.output.view(shape).to(logits.dtype) - logits).abs()
    where = [int(i) for i in torch.unravel_index(difference.argmax(), difference.shape)]
    return (
        f"the model's output is not that of its last linear layer {layer}: they differ most at "
        f"{where}, by {difference.max().item():.3g}; it is changed afterwards (scaled, capped, a "
        "softmax), so pass forward= that returns the layer's output, or name another with head="
    )
