"""What a network predicts under a posterior, and how uncertain it is: for any `nn.Module`.

Letters: N predictions that count, C classes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.data import DataLoader

from epigrok.errors import UserError
from epigrok.posteriors.calling import (
    LABELS,
    Forward,
    counted_positions,
    explaining_wrong_inputs,
    labels_at_their_logits,
    refuse_probabilities,
)
from epigrok.posteriors.evaluating import evaluating
from epigrok.posteriors.protocol import (
    Posterior,
    elements_per_block,
    require_posterior,
    sampled_logits,
)
from epigrok.uncertainty import EntropyStream, ErrorStream, StandardErrors, log_probabilities

UNCERTAINTIES = ("total", "aleatoric", "epistemic")
ELEMENTS_KEPT = 1 << 25
"""Logits are kept for the standard errors up to this many numbers, and else made again."""


@dataclass(frozen=True)
class Prediction:
    """The average prediction under a posterior, and its uncertainties in nats.

    Positions are those of the logits. Positions that do not count (padding) hold NaN.
    """

    probs: Float[Tensor, "*positions C"]
    total: Float[Tensor, "*positions"]
    aleatoric: Float[Tensor, "*positions"]
    epistemic: Float[Tensor, "*positions"]
    """Between 0 and log(num_samples)."""
    standard_errors: StandardErrors
    """From the choice of the samples; NaN for a single sample."""
    is_counted: Bool[Tensor, "*positions"]
    num_samples: int

    def __repr__(self) -> str:
        means = ", ".join(
            f"{name} {getattr(self, name).nanmean().item():.4g}" for name in UNCERTAINTIES
        )
        return (
            f"Prediction(probs {list(self.probs.shape)}, {int(self.is_counted.sum())} count, "
            f"{self.num_samples} samples; means in nats: {means})"
        )


def predict(
    model: nn.Module,
    posterior: Posterior,
    inputs: Any,
    *,
    num_samples: int = 16,
    forward: Forward | None = None,
    mask: Tensor | None = None,
) -> Prediction:
    """Average the predictions of `model` over samples of `posterior`.

    The model is run in evaluation mode and without gradients, and left as it was: parameters,
    buffers, modes and random numbers, also after an exception.

    Args:
        model: Any network that returns logits.
        posterior: A distribution over its weights. One with finitely many samples, like an
            ensemble, uses all of them.
        inputs: A tensor, a tuple or list of arguments, or a mapping of keyword arguments.
        num_samples: How many samples to average over.
        forward: Calls the model on the inputs, if it needs a way of its own.
        mask: Which positions count, besides those that an attention mask leaves out, or labels of
            -100 in a mapping.
    """
    require_posterior(posterior)
    if isinstance(inputs, DataLoader | np.ndarray):
        raise UserError(
            f"predict takes the inputs of one batch, got {type(inputs).__name__}; call it for each "
            "batch of a loader, with its inputs as tensors"
        )
    num_samples = posterior.max_samples or num_samples
    if not isinstance(num_samples, Integral) or num_samples < 1:
        raise UserError(f"a prediction needs a whole number of samples, got {num_samples!r}")
    is_counted, is_first = torch.zeros((), dtype=torch.bool), True

    def draws() -> Iterator[Float[Tensor, "N C"]]:
        nonlocal is_counted, is_first
        for logits_of_parts in sampled_logits(model, posterior, [inputs], num_samples, forward):
            (logits,) = logits_of_parts
            is_counted = counted_positions(logits, inputs, _labels(model, inputs), mask=mask)
            logits_NC = logits[is_counted]
            if is_first:
                refuse_probabilities(logits_NC)
                is_first = False
            yield logits_NC

    with evaluating(model), explaining_wrong_inputs(model, inputs, forward):
        probs_NC, uncertainties, errors = _streamed(draws, num_samples)
    if not probs_NC.isfinite().all():
        raise UserError(
            f"predictions under the posterior {posterior.name!r} are not finite: the inputs are "
            "not, or the weights, or the spread around them, have become too large"
        )

    def placed(values: Tensor) -> Tensor:
        """Numbers of the predictions that count, at their positions."""
        everywhere = values.new_full((*is_counted.shape, *values.shape[1:]), torch.nan)
        everywhere[is_counted] = values
        return everywhere

    return Prediction(
        probs=placed(probs_NC),
        **{name: placed(values) for name, values in uncertainties.items()},
        standard_errors=StandardErrors(**{name: placed(value) for name, value in errors.items()}),
        is_counted=is_counted,
        num_samples=num_samples,
    )


def _labels(model: nn.Module, inputs: Any) -> Tensor | None:
    """Those of a batch that has some: where a label is -100, the prediction does not count."""
    labels = inputs.get(LABELS) if isinstance(inputs, Mapping) else None
    if not isinstance(labels, Tensor) or labels.is_floating_point():
        return None
    return labels_at_their_logits(model, inputs, labels)


def _streamed(
    draws: Callable[[], Iterator[Float[Tensor, "N C"]]], num_samples: int
) -> tuple[Float[Tensor, "N C"], dict[str, Tensor], dict[str, Tensor]]:
    """Probabilities, uncertainties and their errors from logits, a block of rows at a time.

    The errors need the mean prediction, so that there are two passes over the samples.
    """
    streams: list[EntropyStream] = []
    kept: list[Tensor] = []
    for logits_NC in draws():
        blocks = _blocks_of_rows(logits_NC)
        streams = streams or [EntropyStream() for _ in blocks]
        for stream, block_nC in zip(streams, blocks):
            stream.add(log_probabilities(block_nC))
        if num_samples * logits_NC.numel() <= ELEMENTS_KEPT:
            kept.append(logits_NC)
    parts = [stream.decomposition() for stream in streams]
    probs_NC = torch.cat([stream.mean_probs() for stream in streams])
    error_streams = [ErrorStream(stream.log_mean_probs()) for stream in streams]
    # They are several times the size of the predictions.
    del streams
    for logits_NC in kept or draws():
        blocks = _blocks_of_rows(logits_NC)
        for errors, block_nC in zip(error_streams, blocks):
            errors.add(log_probabilities(block_nC))
    error_parts = [errors.standard_errors() for errors in error_streams]
    return (
        probs_NC,
        {name: torch.cat([getattr(part, name) for part in parts]) for name in UNCERTAINTIES},
        {name: torch.cat([getattr(part, name) for part in error_parts]) for name in UNCERTAINTIES},
    )


def _blocks_of_rows(logits_NC: Float[Tensor, "N C"]) -> tuple[Float[Tensor, "_ C"], ...]:
    return logits_NC.split(max(1, elements_per_block(logits_NC.device) // logits_NC.shape[-1]))
