"""How any network is called: what goes in, which output is the logits, which positions count.

Inputs are a tensor, a tuple or list of arguments, or a mapping of keyword arguments as Hugging Face
makes them. The logits are the output itself, its `logits`, or the first element of a tuple; they
have one entry per class in their last dimension. For anything else there is `forward`. What could
be read in two ways is refused.

Letters: C classes.
"""

import inspect
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
    args, kwargs = _arguments(inputs)
    return model(*args, **kwargs)


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, Mapping):
        return (), {name: value for name, value in inputs.items() if name != LABELS}
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {}


@contextmanager
def explaining_wrong_inputs(
    model: nn.Module, inputs: Any, forward: Forward | None
) -> Iterator[None]:
    """Say in one sentence that a model's own `forward` takes other arguments than these inputs."""
    try:
        yield
    except TypeError as error:
        if forward is not None or _is_callable_on(model, inputs):
            raise
        raise UserError(
            f"{type(model).__name__} does not take these inputs: {error}; pass them as its forward "
            "takes them, without labels, or pass forward=lambda model, inputs: …"
        ) from error


def _is_callable_on(model: nn.Module, inputs: Any) -> bool:
    args, kwargs = _arguments(inputs)
    try:
        inspect.signature(model.forward).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def network_logits(
    model: nn.Module, inputs: Any, forward: Forward | None = None
) -> Float[Tensor, "*positions C"]:
    """The logits of `model`, in the mode it is in."""
    return logits_in((forward or call)(model, inputs), is_chosen=forward is not None)


def swapped_logits(
    model: nn.Module, tensors: Mapping[str, Tensor], inputs: Any, forward: Forward | None = None
) -> Float[Tensor, "*positions C"]:
    """The logits of `model` with `tensors` in the place of parameters and buffers of its own.

    `forward` gets the model itself, so it may call any of its methods.
    """
    _require_place(model, tensors)
    # Copies of buffers: a model may change its own in place, and a sample must stay what it is.
    buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    named = {f"model.{n}": t.clone() if n in buffers else t for n, t in tensors.items()}
    output = functional_call(_Called(model, forward or call), named, (inputs,))
    return logits_in(output, is_chosen=forward is not None)


class _Called(nn.Module):
    """A model and the way to call it as one module: `functional_call` takes nothing else."""

    def __init__(self, model: nn.Module, forward: Forward) -> None:
        super().__init__()
        self.model, self._forward = model, forward

    def forward(self, inputs: Any) -> Any:
        """Call the model."""
        return self._forward(self.model, inputs)


def _require_place(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors of another model, of which `functional_call` would ignore some."""
    of_model = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    for name, tensor in tensors.items():
        own = of_model.get(name)
        if own is None or own.shape != tensor.shape:
            found = "none" if own is None else f"one of shape {list(own.shape)}"
            raise UserError(
                f"the posterior is one of another model: it has a parameter or buffer called "
                f"{name!r} of shape {list(tensor.shape)}, and this model has {found}; pass the "
                "model that it was made of"
            )


def logits_in(output: Any, is_chosen: bool = False) -> Float[Tensor, "*positions C"]:
    """The logits in what a model, or a `forward` that chooses, returned."""
    logits = output
    if isinstance(output, Mapping) and "logits" in output:
        logits = output["logits"]
    elif hasattr(output, "logits"):
        logits = output.logits
    elif isinstance(output, (tuple, list)) and output:
        logits = output[0]
        _require_one_candidate(output)
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
    if logits.ndim > 3 and not is_chosen:
        raise UserError(
            f"the output has shape {list(logits.shape)}, and the classes may be any dimension but "
            "the first; pass forward=lambda model, inputs: model(inputs).movedim(1, -1), if they "
            "are the second, so that they become the last"
        )
    return logits


def _require_one_candidate(output: tuple[Any, ...] | list[Any]) -> None:
    """Refuse a tuple that has other tensors with a row for each of the first one's."""
    tensors = [part for part in output if isinstance(part, Tensor) and part.is_floating_point()]
    shapes = [list(part.shape) for part in tensors if 2 <= part.ndim <= 3]
    if len(shapes) > 1 and len({shape[0] for shape in shapes}) < len(shapes):
        raise UserError(
            f"the model returned several tensors that may be the logits, of shapes {shapes}; pass "
            "forward=lambda model, inputs: model(inputs)[0], or whichever they are"
        )


def refuse_probabilities(logits_NC: Float[Tensor, "N C"]) -> None:
    """Refuse the output of a softmax: taken for logits, all of it would look uncertain."""
    sums_N = logits_NC.double().sum(dim=-1)
    rounding = 1e-4 if logits_NC.element_size() > 2 else 2e-2
    if len(sums_N) and logits_NC.min() >= 0 and (sums_N - 1.0).abs().max() < rounding:
        raise UserError(
            "the model returns probabilities: all rows are positive and sum to one; pass "
            "forward=lambda model, inputs: model(inputs).log(), as logits are needed"
        )


def split_batch(batch: Any) -> tuple[Any, Any]:
    """Inputs and labels of a batch: a pair, a mapping with `labels`, or inputs alone and None.

    A mapping stays whole, because a `forward` of yours may want its labels.
    """
    if isinstance(batch, Mapping):
        return batch, batch.get(LABELS)
    if isinstance(batch, (tuple, list)):
        if len(batch) != 2 or not isinstance(batch[1], Tensor):
            kinds = ", ".join(type(part).__name__ for part in batch)
            raise UserError(
                "a batch must be a pair of inputs and a tensor of labels, or a mapping with "
                f"{LABELS!r}, got {len(batch)} parts: {kinds}; yield ((…, …), labels) for several "
                "inputs"
            )
        return batch[0], batch[1]
    return batch, None


def labels_at_their_logits(
    model: nn.Module, batch: Any, labels: Tensor, ignore_index: int = IGNORE_INDEX
) -> Tensor:
    """Labels moved to the positions whose logits answer them.

    Hugging Face's causal models take the tokens themselves as labels, and shift them in their loss:
    the logits at a position answer the label after it. Labels of another shape than the tokens
    were made for a `forward` of one's own, and stay.
    """
    is_causal = any(type(module).__name__.endswith(CAUSAL) for module in model.modules())
    if not (is_causal and isinstance(batch, Mapping)) or labels.ndim != 2:
        return labels
    tokens = batch.get("input_ids")
    if tokens is not None and tokens.shape != labels.shape:
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

    A model that makes one prediction for a whole sequence ignores the attention mask.
    """
    shape = logits.shape[:-1]
    is_counted = torch.ones(shape, dtype=torch.bool, device=logits.device)
    attended = _attention_mask(inputs) if isinstance(inputs, Mapping) else None
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
            raise UserError(
                f"{name}: shape {list(part.shape)}, the predictions' is {list(shape)}; they must "
                "have an entry for each prediction"
            )
        is_counted &= part.bool().reshape(shape).to(logits.device)
    return is_counted


def _attention_mask(inputs: Mapping[str, Any]) -> Any:
    """The mask of the sequence that is predicted, which with a decoder is not the encoder's."""
    has_decoder = any(name.startswith("decoder_") for name in inputs)
    return inputs.get(f"decoder_{ATTENTION_MASK}" if has_decoder else ATTENTION_MASK)
