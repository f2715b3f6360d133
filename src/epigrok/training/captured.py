"""Work of a step as a CUDA graph: the host starts it with a single call and never waits."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from epigrok.tasks import Batch

StepWork = Callable[[int | Tensor], tuple[Float[Tensor, ""], Float[Tensor, ""]]]
"""Takes the number of the step; returns its loss and gradient norm."""

BatchWork = Callable[[Batch], tuple[Float[Tensor, ""], Float[Tensor, ""]]]
"""The same, given the step's batch."""

_STEPS_BEFORE_CAPTURE = 3
"""Steps taken without a graph first, in which compilers and libraries set themselves up."""


class CapturedWork:
    """Work that is recorded once and then replayed, with the same numbers.

    The batch of the next step is drawn while the present step runs.

    Args:
        draw: The batch of a step, given its number.
        work: Takes a step. It allocates its own gradients, so that they live in the graph's memory.
        optimisers: The optimisers that `work` steps; each does the same work on the same addresses
            at every step.
        device: A GPU.
    """

    def __init__(
        self,
        draw: Callable[[int | Tensor], Batch],
        work: BatchWork,
        optimisers: list[Optimizer],
        device: torch.device,
    ) -> None:
        self._draw, self._work, self._optimisers = draw, work, optimisers
        # What changes from step to step must be read from the device's memory.
        self._step = torch.zeros((), dtype=torch.int64, device=device)
        for group in _groups(optimisers):
            group["lr"] = torch.as_tensor(group["lr"], dtype=torch.float32, device=device)
        self._stream, self._beside = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self._num_taken = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Batch | None = None
        self._results: tuple[Tensor, ...] = ()

    def __call__(self, step: int | Tensor) -> tuple[Tensor, Tensor]:
        """Do the work of step number `step`."""
        self._step.fill_(step)
        self._num_taken += 1
        if self._num_taken <= _STEPS_BEFORE_CAPTURE:
            return self._take_aside()
        if self._graph is None:
            self._batch = self._draw(self._step)
            self._graph = self._captured(self._batch)
        self._graph.replay()
        # Copies, because the next replay overwrites the originals.
        loss, gradient_norm = self._results
        return loss.clone(), gradient_norm.clone()

    def _take_aside(self) -> tuple[Tensor, Tensor]:
        """Do the work on a side stream, as CUDA requires before work is captured."""
        main = torch.cuda.current_stream(self._step.device)
        self._stream.wait_stream(main)
        with torch.cuda.stream(self._stream):
            results = self._work(self._draw(self._step))
        main.wait_stream(self._stream)
        return results

    def _captured(self, batch: Batch) -> torch.cuda.CUDAGraph:
        for group in _groups(self._optimisers):
            group["capturable"] = True
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._beside.wait_stream(self._stream)
            with torch.cuda.stream(self._beside):
                following = self._draw(self._step + 1)
            self._results = self._work(batch)
            self._stream.wait_stream(self._beside)
            for here, new in zip(_tensors(batch), _tensors(following)):
                here.copy_(new)
        # Checkpoints keep these settings, and a run may resume on a CPU, which has no graphs.
        for group in _groups(self._optimisers):
            group["capturable"] = False
        return graph


def _tensors(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    return batch.tokens_BL, batch.answers_BT, batch.is_scored_BT


def _groups(optimisers: list[Optimizer]) -> Iterator[dict[str, Any]]:
    return (group for optimiser in optimisers for group in optimiser.param_groups)
