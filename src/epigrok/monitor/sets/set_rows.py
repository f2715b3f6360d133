"""The predictions of one set that every look reads: which they are, and how the model makes them.

A model that answers once per input has a row per input. One that answers at several positions has a
row per position that counts: not padding, not without a label in data that have labels, and only
each sequence's last if asked. Of too many, the rows are spread over all sequences, because
positions of one sequence are alike.

Letters: B inputs, N rows, C classes, T positions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.monitor.noise import NoisyNetwork, answers_of
from epigrok.monitor.searching import searched_tolerance
from epigrok.monitor.sets.input_columns import InputColumns, columns_of
from epigrok.monitor.sets.inputs import InputSet
from epigrok.monitor.tolerance import Tolerance, ToleranceSettings
from epigrok.posteriors.calling import (
    Forward,
    counted_positions,
    labels_at_their_logits,
    network_logits,
)
from epigrok.posteriors.evaluating import evaluating
from epigrok.posteriors.head import HeadInputs, HeadPass, head_pass
from epigrok.posteriors.protocol import Posterior, sampled_logits
from epigrok.random_streams import random_bits, stream_key

Answered = Literal["all", "last"]


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A model and how it is called."""

    model: nn.Module
    forward: Forward | None = None
    head: str | None = None

    @property
    def device(self) -> torch.device:
        """Where the model's inputs belong."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The model's precision: that of its first parameter that has one."""
        kinds = (weight.dtype for weight in self.model.parameters())
        return next((kind for kind in kinds if kind.is_floating_point), torch.float32)

    def head_pass(self, inputs: Any, known_head: str | None = None) -> HeadPass:
        """One pass, seen from the head; cheaper where the head is known from an earlier one."""
        return head_pass(self.model, inputs, self.forward, head=known_head or self.head)


class SetRows:
    """The rows of one set, chosen at the first pass and the same ever after."""

    def __init__(self, inputs: InputSet, answered: Answered, at_most: int) -> None:
        self._inputs, self._answered, self._at_most = inputs, answered, at_most
        self._first_dtype: torch.dtype | None = None
        self._moved: tuple[tuple[torch.device, torch.dtype], InputSet] | None = None
        self._shapes: list[tuple[int, ...]] = []
        self._chosen: list[Tensor] = []
        self._answers_once = True
        self._head: str | None = None

    @property
    def described(self) -> str:
        """What the model is called on, in words."""
        return self._inputs.described

    @property
    def num_inputs(self) -> int:
        """Of the largest batch."""
        return max(self._inputs.sizes)

    @property
    def digest(self) -> str:
        """Of the inputs, to know them again."""
        return self._inputs.digest

    @property
    def is_row_per_input(self) -> bool:
        """Whether each input has one row; known after a pass."""
        sizes = list(self._inputs.sizes)
        # A model may return the positions of all sequences as rows, as many as were chosen of them.
        has_own = [shape[0] for shape in self._shapes] == sizes
        return self._answers_once and has_own and [len(rows) for rows in self._chosen] == sizes

    def columns(self, most_rows: int, most_columns: int) -> InputColumns | None:
        """The inputs as a table, where each has one row and all are alike; known after a pass."""
        return columns_of(self._inputs, most_rows, most_columns) if self.is_row_per_input else None

    def head_inputs(self, call: ModelCall) -> HeadInputs:
        """The features of the rows, and the head that answers them."""
        inputs = self._at_model(call)
        features = []
        for place, batch in enumerate(inputs.batches):
            seen = call.head_pass(batch, self._head)
            self._head = seen.head.weight_name
            rows = self._rows_of(place, seen.logits, batch, call.model)
            features.append(seen.features.flatten(0, -2)[rows])
        return HeadInputs(features_ND=torch.cat(features), head=seen.head)

    def own_logits(self, call: ModelCall) -> Float[Tensor, "N C"]:
        """The network's own logits of the rows, whatever its output layer is."""
        inputs = self._at_model(call)
        parts = []
        with evaluating(call.model):
            for place, batch in enumerate(inputs.batches):
                logits = network_logits(call.model, batch, call.forward)
                rows = self._rows_of(place, logits, batch, call.model)
                parts.append(logits.flatten(0, -2)[rows])
        return torch.cat(parts)

    def noisy_logits(
        self, call: ModelCall, noisy: NoisyNetwork, scale: float, draw: int
    ) -> Float[Tensor, "N C"]:
        """The logits of the rows under one draw of noise of this size on the whole network."""
        with evaluating(call.model):
            return noisy.logits(scale, draw, None, self._logits_by(call))

    def network_tolerance(
        self, call: ModelCall, noisy: NoisyNetwork, settings: ToleranceSettings
    ) -> Tolerance:
        """τ with noise on the whole network."""
        forward = self._logits_by(call)
        with evaluating(call.model):
            return searched_tolerance(
                lambda scale, draw: answers_of(noisy.logits(scale, draw, None, forward)),
                self._shapes[0][-1],
                settings,
            )

    def logits_under(
        self, call: ModelCall, posterior: Posterior, num_samples: int
    ) -> Iterator[Float[Tensor, "N C"]]:
        """The logits of all rows under each sample of a posterior."""
        batches = self._at_model(call).batches
        with evaluating(call.model):
            for parts in sampled_logits(call.model, posterior, batches, num_samples, call.forward):
                chosen = zip(parts, self._chosen)
                yield torch.cat([logits.flatten(0, -2)[rows] for logits, rows in chosen])

    def _at_model(self, call: ModelCall) -> InputSet:
        """The inputs where the model is; converted as it was, if they had its precision."""
        place = call.device, call.dtype
        self._first_dtype = self._first_dtype or call.dtype
        if self._moved is None or self._moved[0] != place:
            self._moved = place, self._inputs.to(call.device, {self._first_dtype: call.dtype})
        return self._moved[1]

    def _logits_by(self, call: ModelCall) -> Callable[[Any, Any], Float[Tensor, "N C"]]:
        """A `Forward` that answers all rows, whatever its inputs."""
        batches = self._at_model(call).batches

        def forward(model: Any, _: Any) -> Tensor:
            return torch.cat(
                [
                    network_logits(model, batch, call.forward).flatten(0, -2)[rows]
                    for batch, rows in zip(batches, self._chosen)
                ]
            )

        return forward

    def _rows_of(
        self, place: int, logits: Tensor, batch: Any, model: nn.Module
    ) -> Int[Tensor, " N"]:
        shape = tuple(logits.shape)
        if place == len(self._shapes):
            share = self._at_most * self._inputs.sizes[place] / sum(self._inputs.sizes)
            is_counted = self._counted(place, logits, batch, model)
            num_counted_B = is_counted.reshape(len(is_counted), -1).sum(dim=1)
            self._answers_once &= self._answered == "last" or bool((num_counted_B == 1).all())
            self._shapes.append(shape)
            self._chosen.append(chosen_rows(is_counted, self._answered, max(1, round(share))))
        if shape != self._shapes[place]:
            raise UserError(
                f"for {self._inputs.name} the model returned logits of shape {list(shape)}, and "
                f"{list(self._shapes[place])} before; make a new monitor if it was changed"
            )
        return self._chosen[place].to(logits.device)

    def _counted(
        self, place: int, logits: Tensor, batch: Any, model: nn.Module
    ) -> Bool[Tensor, "B *positions"]:
        """The positions that are attended to and, where the data have labels, have one."""
        labels = self._inputs.places[place]
        if labels is not None:
            labels = labels_at_their_logits(model, batch, labels)
            shape = logits.shape[:-1]
            is_flat = len(shape) == 1 and labels.numel() == shape.numel()
            # Labels of another shape belong to another of the model's outputs.
            labels = labels if labels.shape == shape or is_flat else None
        return counted_positions(logits, batch, labels)


def chosen_rows(
    is_counted: Bool[Tensor, "B *positions"], answered: Answered, at_most: int
) -> Int[Tensor, " N"]:
    """Indices of the predictions to read, among those of all positions one after the other."""
    is_counted_BT = (
        is_counted.cpu().flatten(1) if is_counted.ndim > 1 else is_counted.cpu()[:, None]
    )
    num_inputs, num_positions = is_counted_BT.shape
    position_T = torch.arange(num_positions, device="cpu")
    if answered == "last":
        # The last of each sequence that counts; sequences without any have no row.
        last_B = (position_T + 1).where(is_counted_BT, 0).amax(dim=1) - 1
        is_counted_BT = position_T == last_B[:, None]
    # Each sequence puts its positions into an order of its own; first come the first of all.
    key = stream_key(0, "monitor:rows")
    order_BT = random_bits(key, (num_inputs, num_positions)).where(is_counted_BT, 2**63 - 1)
    turn_BT = order_BT.argsort(dim=1).argsort(dim=1)
    turn_N = turn_BT.where(is_counted_BT, num_positions).flatten()
    first = turn_N.argsort(stable=True)[: min(at_most, int(is_counted_BT.sum()))]
    return first.sort().values
