"""How any network is called: what goes in, which output is the logits, which positions count.

Inputs are a tensor, a tuple or list of arguments, or a mapping of keyword arguments as Hugging Face
makes them. The logits are the output itself, its `logits`, or the first element of a tuple; they
have one entry per class in their last dimension. For anything else there is `forward`.

Letters: C classes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.func import functional_call

from epigrok.errors import UserError

Forward = Callable[[Any, Any], Any]
"""Calls a model on inputs and returns its logits, or an output that holds them."""

LABELS = "labels"
"""The entry of a mapping that is not an input: with it, a model would compute its loss as well."""
ATTENTION_MASK = "attention_mask"
CAUSAL = ("ForCausalLM", "LMHeadModel")
"""How Hugging Face's classes are called whose labels are the tokens themselves."""
IGNORE_INDEX = -100
"""The label of positions that do not count, in torch's losses and in Hugging Face's batches."""


def call(model: nn.Module, inputs: Any) -> Any:
    """The output of `model` for inputs of any of the three kinds."""
    if isinstance(inputs, Mapping):
        return model(**{name: value for name, value in inputs.items() if name != LABELS})
    if isinstance(inputs, (tuple, list)):
        return model(*inputs)
    return model(inputs)


def network_logits(
    model: nn.Module, inputs: Any, forward: Forward | None = None
) -> Float[Tensor, "*positions C"]:
    """The logits of `model`, in the mode it is in."""
    return logits_in((forward or call)(model, inputs))


def swapped_logits(
    model: nn.Module, tensors: Mapping[str, Tensor], inputs: Any, forward: Forward | None = None
) -> Float[Tensor, "*positions C"]:
    """The logits of `model` with `tensors` in the place of parameters and buffers of its own.

    `forward` gets the model itself, so it may call any of its methods.
    """
    unknown = tensors.keys() - _names(model)
    if unknown:
        raise UserError(f"the model has no parameter or buffer called {sorted(unknown)[0]!r}")
    named = {f"model.{name}": tensor for name, tensor in tensors.items()}
    return logits_in(functional_call(_Called(model, forward or call), named, (inputs,)))


class _Called(nn.Module):
    """A model and the way to call it as one module: `functional_call` takes nothing else."""

    def __init__(self, model: nn.Module, forward: Forward) -> None:
        super().__init__()
        self.model, self._forward = model, forward

    def forward(self, inputs: Any) -> Any:
        """Call the model."""
        return self._forward(self.model, inputs)


def _names(model: nn.Module) -> set[str]:
    parameters = model.named_parameters(remove_duplicate=False)
    return {name for name, _ in [*parameters, *model.named_buffers(remove_duplicate=False)]}


def logits_in(output: Any) -> Float[Tensor, "*positions C"]:
    """The logits in what a model returned."""
    logits = output
    if isinstance(output, Mapping) and "logits" in output:
        logits = output["logits"]
    elif hasattr(output, "logits"):
        logits = output.logits
    elif isinstance(output, (tuple, list)) and output:
        logits = output[0]
    if not isinstance(logits, Tensor):
        kind = f"a mapping with {sorted(output)}" if isinstance(output, Mapping) else type(output)
        raise UserError(
            f"the model returned {kind}, in which the logits cannot be found; pass "
            "forward=lambda model, inputs: …, which returns them"
        )
    if logits.ndim < 2 or logits.shape[-1] < 2 or not logits.is_floating_point():
        raise UserError(
            "logits need a row per prediction and two or more classes in the last dimension, got "
            f"shape {list(logits.shape)} of {logits.dtype}; pass forward=lambda model, inputs: …, "
            "which returns them so"
        )
    return logits


def split_batch(batch: Any) -> tuple[Any, Tensor | None]:
    """Inputs and labels of a batch: a pair, a mapping with `labels`, or inputs alone.

    A mapping stays whole, because a `forward` of yours may want its labels.
    """
    if isinstance(batch, Mapping):
        return batch, batch.get(LABELS)
    if isinstance(batch, (tuple, list)):
        if len(batch) != 2 or not isinstance(batch[1], Tensor):
            raise UserError(
                f"a batch must be a pair of inputs and labels or a mapping, got {len(batch)} parts"
            )
        return batch[0], batch[1]
    return batch, None


def labels_at_their_logits(
    model: nn.Module, batch: Any, labels: Tensor, ignore_index: int = IGNORE_INDEX
) -> Tensor:
    """Labels moved to the positions whose logits answer them.

    Hugging Face's causal models take the tokens themselves as labels, and shift them in their loss:
    the logits at a position answer the label after it.
    """
    is_causal = any(type(module).__name__.endswith(CAUSAL) for module in model.modules())
    if not (is_causal and isinstance(batch, Mapping)):
        return labels
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], ignore_index)], dim=1)


def counted_positions(
    logits: Float[Tensor, "*positions C"],
    inputs: Any = None,
    labels: Tensor | None = None,
    *,
    ignore_index: int = IGNORE_INDEX,
    mask: Tensor | None = None,
) -> Bool[Tensor, "*positions"]:
    """Which predictions count: inside the mask, attended to, and not labelled `ignore_index`.

    Where a model returns one prediction for a whole sequence, the attention mask has no say.
    """
    shape = logits.shape[:-1]
    is_counted = torch.ones(shape, dtype=torch.bool, device=logits.device)
    attended = inputs.get(ATTENTION_MASK) if isinstance(inputs, Mapping) else None
    is_pooled = len(shape) == 1 and attended is not None and attended.numel() != shape.numel()
    parts = {
        "the mask": mask,
        "the labels": None if labels is None else labels != ignore_index,
        "the attention mask": None if is_pooled else attended,
    }
    for name, part in parts.items():
        if part is None:
            continue
        # A model may have flattened sequences and positions into rows.
        if part.shape != shape and (len(shape) > 1 or part.numel() != shape.numel()):
            raise UserError(f"{name}: shape {list(part.shape)}, the predictions' is {list(shape)}")
        is_counted &= part.bool().view(shape).to(logits.device)
    return is_counted


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards the model and torch's generators are as before.

    That is every module's mode, every buffer, every `requires_grad`, also after an exception.
    """
    modes = [(module, module.training) for module in model.modules()]
    needs_gradient = [(weights, weights.requires_grad) for weights in model.parameters()]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    # A GPU has a generator of its own.
    tensors = [weights for weights, _ in needs_gradient] + [buffer for _, _, buffer, _ in buffers]
    gpus = sorted({tensor.device.index for tensor in tensors if tensor.is_cuda})
    try:
        with torch.random.fork_rng(devices=gpus), torch.no_grad():
            model.eval()
            yield
    finally:
        for module, was_training in modes:
            module.training = was_training
        for weights, needed in needs_gradient:
            weights.requires_grad_(needed)
        for module, name, buffer, values in buffers:
            # A model may replace a buffer as well as change it. One that did not change is left
            # alone: writing to it would spoil a backward pass that still needs it.
            module._buffers[name] = buffer
            if not torch.equal(buffer, values):
                buffer.detach().copy_(values)
