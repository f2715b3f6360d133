"""What it costs that the same seed gives the same weights: sums in one order, against any order.

In our step only the gradient of the embedding has a usual form in which threads add in whatever
order they come (atomic additions). All other kernels make each sum in one program, which is also
the fastest form known to us, so that their order costs nothing.
"""

from dataclasses import dataclass

import torch

from epigrok.bench.speed import average_seconds
from epigrok.config import RunConfig
from epigrok.model import Transformer, build_model
from epigrok.model.fused_training import fits_kernels

_TIMES = 20


@dataclass(frozen=True)
class FixedOrder:
    """Milliseconds of a step that go into the sums by token."""

    in_order: float
    in_any_order: float
    """With the embedding's gradient of PyTorch."""

    def share_of(self, step_milliseconds: float) -> float:
        """How much longer a step takes because of the order."""
        return (self.in_order - self.in_any_order) / step_milliseconds


def measure_fixed_order(config: RunConfig, device: torch.device) -> FixedOrder | None:
    """Both forms at the sizes of a training step; None where our kernels are not used."""
    if device.type != "cuda":
        return None
    model = build_model(config, device)
    if not isinstance(model, Transformer) or not fits_kernels(model, config.batch_size):
        return None
    from epigrok.model.fused_blocks import filled_up
    from epigrok.model.kernels.token_sums import sums_by_token

    num_tokens, width = model.embedding.weight.shape
    # Nothing is predicted from the last answer.
    number = config.batch_size * (config.task.num_examples * config.task.example_length - 1)
    tokens_N = torch.randint(num_tokens, (number,), device=device)
    # Of the stream, and of queries, keys and values.
    widths = (width, 3 * width)
    both = [torch.randn(number, columns, device=device).bfloat16() for columns in widths]
    as_kernels_take_them, filled = tokens_N.int(), filled_up(num_tokens)

    def in_order() -> None:
        for values in both:
            sums_by_token(values, as_kernels_take_them, filled)

    def in_any_order() -> None:
        for values in both:
            torch.ops.aten.embedding_dense_backward(values, tokens_N, num_tokens, -1, False)

    for work in (in_order, in_any_order):
        average_seconds(work, 3, device)
    ordered, unordered = (
        1e3 * average_seconds(work, _TIMES, device) for work in (in_order, in_any_order)
    )
    return FixedOrder(ordered, unordered)
