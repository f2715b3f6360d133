"""The output head of a network, and what arrives at it: found by watching one forward pass.

The head is the linear map whose result is the logits, or whose rows the logits are picked from, as
when a classifier reads the last token that is not padding.

Letters: N rows (predictions), D features, C classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import linear

from epigrok.errors import UserError
from epigrok.posteriors.calling import Forward, counted_positions, network_logits
from epigrok.posteriors.evaluating import evaluating
from epigrok.posteriors.linear_calls import LinearCalls, how_they_differ, picked_rows


class NoHeadError(UserError):
    """The logits are not what a linear layer of the model returned, or not of one alone."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """A linear map from features to logits."""

    weight_CD: Float[Tensor, "C D"]
    bias_C: Float[Tensor, " C"] | None = None
    weight_name: str = ""
    """What the model calls the weight; empty where it is no parameter of a model."""
    bias_name: str = ""
    is_shared: bool = False
    """Whether the model uses the weight elsewhere too, as a head tied to an embedding does."""
    dtype: torch.dtype = torch.float32
    """The model's own; copies here have single precision or more."""

    @classmethod
    def of(cls, layer: nn.Linear) -> "Head":
        """A layer as it is now."""
        bias = None if layer.bias is None else _wide_copy(layer.bias)
        return cls(weight_CD=_wide_copy(layer.weight), bias_C=bias, dtype=layer.weight.dtype)

    @property
    def matrix(self) -> Float[Tensor, "C columns"]:
        """Weight and bias as one matrix, the bias as its last column."""
        if self.bias_C is None:
            return self.weight_CD
        return torch.cat([self.weight_CD, self.bias_C[:, None]], dim=1)

    def extended(self, features: Float[Tensor, "*positions D"]) -> Float[Tensor, "*positions _"]:
        """Features to multiply the matrix with: a one is added where there is a bias."""
        if self.bias_C is None:
            return features
        return torch.cat([features, features.new_ones(*features.shape[:-1], 1)], dim=-1)

    def rows(self, classes: slice) -> "Head":
        """The part that some of the classes depend on."""
        bias = None if self.bias_C is None else self.bias_C[classes]
        return replace(self, weight_CD=self.weight_CD[classes], bias_C=bias)

    def with_matrix(self, matrix: Float[Tensor, "C columns"]) -> "Head":
        """The same head with other weights and bias."""
        matrix = matrix.to(self.weight_CD.dtype)
        if self.bias_C is None:
            return replace(self, weight_CD=matrix)
        return replace(self, weight_CD=matrix[:, :-1], bias_C=matrix[:, -1])

    def logits(self, features: Float[Tensor, "*positions D"]) -> Float[Tensor, "*positions C"]:
        """What it makes of features."""
        bias = None if self.bias_C is None else self.bias_C.to(features.dtype)
        return linear(features, self.weight_CD.to(features.dtype), bias)

    def require_fitted(self, fitted: "Head") -> None:
        """Refuse predictions by a posterior over the head of another model, or of other weights."""
        is_alike = self.weight_CD.shape == fitted.weight_CD.shape
        is_alike &= (self.bias_C is None) == (fitted.bias_C is None)
        if not (is_alike and all(self._has_rows_of(fitted, rows) for rows in self._blocks())):
            raise UserError(
                f"the posterior was fitted to {fitted!r} with other weights than the model's "
                f"{self!r}; fit it again, or pass the model as it was fitted"
            )

    def _blocks(self) -> Iterator[slice]:
        # Comparing takes several copies: of a large vocabulary, not of all of it at once.
        return (slice(first, first + 1024) for first in range(0, len(self.weight_CD), 1024))

    def _has_rows_of(self, other: "Head", rows: slice) -> bool:
        own, others = self.rows(rows).matrix, other.rows(rows).matrix
        # A model in half precision has rounded weights.
        return torch.allclose(own, others.to(own.device), rtol=1e-2, atol=1e-5)

    def __repr__(self) -> str:
        named = f" {self.weight_name!r}" if self.weight_name else ""
        bias = " with bias" if self.bias_C is not None else ""
        shape = " x ".join(map(str, self.weight_CD.shape))
        return f"Head({shape}{bias}{named}{', shared' if self.is_shared else ''})"

    def parameters(self) -> dict[str, Tensor]:
        """Its parts under the names that the model gives them."""
        has_names = self.weight_name and (self.bias_C is None or self.bias_name)
        if self.is_shared or not has_names:
            why = "is shared with the rest of the model" if self.is_shared else "has no name in it"
            raise UserError(
                f"the head {why}, so it cannot be replaced among the model's parameters; use "
                "predict, or logits_of"
            )
        named = {self.weight_name: self.weight_CD.to(self.dtype)}
        if self.bias_C is not None:
            named[self.bias_name] = self.bias_C.to(self.dtype)
        return named


@dataclass(frozen=True, kw_only=True)
class HeadInputs:
    """Features of N inputs, and the head that answers them."""

    features_ND: Float[Tensor, "N D"]
    head: Head

    def logits(self) -> Float[Tensor, "N C"]:
        """The network's own logits."""
        return self.head.logits(self.features_ND)


@dataclass(frozen=True, kw_only=True)
class HeadPass:
    """A forward pass seen from the head: what it got and what the model returned."""

    features: Float[Tensor, "*positions D"]
    logits: Float[Tensor, "*positions C"]
    head: Head

    def rows(self, is_counted: Bool[Tensor, "*positions"]) -> HeadInputs:
        """The features of the predictions that count."""
        return HeadInputs(features_ND=self.features[is_counted], head=self.head)


def own_head(model: nn.Module, weight_CD: Float[Tensor, "C D"]) -> Head:
    """The head of a network that tells its weight and has no bias."""
    names = [n for n, w in model.named_parameters(remove_duplicate=False) if w is weight_CD]
    owners = [model.get_submodule(name.rpartition(".")[0]) for name in names]
    is_shared = len(names) > 1 or any(isinstance(owner, nn.Embedding) for owner in owners)
    return Head(
        weight_CD=_wide_copy(weight_CD),
        weight_name=names[0] if names else "",
        is_shared=is_shared,
        dtype=weight_CD.dtype,
    )


def head_inputs(
    model: nn.Module,
    inputs: Any,
    forward: Forward | None = None,
    *,
    head: str | None = None,
    mask: Tensor | None = None,
) -> HeadInputs:
    """The features that reach `model`'s head on `inputs`, one row for each prediction that counts.

    Padding does not count, nor what `mask` leaves out. See `head_pass` for the head.
    """
    seen = head_pass(model, inputs, forward, head=head)
    return seen.rows(counted_positions(seen.logits, inputs, mask=mask))


def head_pass(
    model: nn.Module, inputs: Any, forward: Forward | None = None, *, head: str | None = None
) -> HeadPass:
    """Run `model` once, in evaluation mode, and find what its head got.

    A model whose logits are not what its head returned (because it caps or scales them) is refused:
    noise on the head would be read wrongly.

    Args:
        model: It is left as it was.
        inputs: As `calling` takes them.
        forward: Calls the model, if it needs a way of its own.
        head: Name of the layer, or of the parameter, if several return the logits.
    """
    watch = LinearCalls(model, head)
    with evaluating(model), watch:
        logits = network_logits(model, inputs, forward)
    if not watch.calls:
        wanted = "linear layer" if head is None else f"linear layer called {head!r}"
        used = sorted(name for name in watch.num_uses if name.endswith("weight"))
        instead = f"but the weights {used}" if used else "and no weight that can be seen"
        raise NoHeadError(f"the model used no {wanted} in its forward pass, {instead}")
    rows_of_call = [(call, picked_rows(call, logits)) for call in watch.calls]
    matches = [(call, rows_N) for call, rows_N in rows_of_call if rows_N is not None]
    names = sorted({call.weight_name for call, _ in matches})
    if not names:
        raise NoHeadError(how_they_differ(watch.calls[-1], logits))
    if len(names) > 1:
        raise NoHeadError(f"several layers return these logits; choose one with head=, of {names}")
    call, rows_N = matches[-1]
    features_ND = _wide(call.features.flatten(0, -2)[rows_N])
    return HeadPass(
        features=features_ND.view(*logits.shape[:-1], -1),
        logits=logits,
        head=Head(
            weight_CD=_wide_copy(call.weight),
            bias_C=None if call.bias is None else _wide_copy(call.bias),
            weight_name=call.weight_name,
            bias_name=call.bias_name,
            is_shared=watch.num_uses[call.weight_name] > 1,
            dtype=call.weight.dtype,
        ),
    )


def _wide(values: Tensor) -> Tensor:
    """In single precision or more."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _wide_copy(values: Tensor) -> Tensor:
    # A copy, because an optimiser changes weights in place.
    return _wide(values.detach().clone())
