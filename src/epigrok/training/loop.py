"""One optimiser step per batch; the caller iterates and decides when to log, evaluate and save."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.optim import Optimizer

from epigrok.config import RunConfig
from epigrok.model import Network, Transformer, build_model
from epigrok.model.compilation import compiled as fused
from epigrok.model.compilation import forget_compiled
from epigrok.model.fused_training import fits_kernels, loss_and_gradients
from epigrok.posteriors import DiagonalGaussian, VariationalOptimiser
from epigrok.tasks import Batch, TaskFamily
from epigrok.training.captured import CapturedWork, StepWork
from epigrok.training.optimiser import build_optimisers, set_learning_rates
from epigrok.training.schedule import learning_rate_scale


@dataclass
class TrainState:
    """Everything that learning changes; resuming restores this and nothing else."""

    model: Network
    optimisers: list[Optimizer]
    step: int

    @property
    def variational(self) -> VariationalOptimiser | None:
        """The optimiser that carries a posterior, or None."""
        first = self.optimisers[0]
        return first if isinstance(first, VariationalOptimiser) else None

    def carried_posterior(self) -> DiagonalGaussian | None:
        """The posterior that the optimiser carries, or None."""
        return None if self.variational is None else self.variational.posterior(self.model)

    def optimiser_facts(self) -> dict[str, float]:
        """Facts of the optimiser for the table `training`, such as quantiles of its spread."""
        return {} if self.variational is None else self.variational.spread()

    def weights_to_differentiate(self, sample: int) -> AbstractContextManager[None]:
        """Where gradients are taken: at a weight sample, or at the weights themselves."""
        if self.variational is None:
            return nullcontext()
        return self.variational.sampled_weights(sample)


@dataclass(frozen=True)
class StepRecord:
    """Loss and gradient norm of one update. They stay on the device; reading one waits for it.

    Where an update takes gradients at several weight samples, they are those of the last one.
    """

    step: int
    """Updates taken, this one included."""
    loss: Float[Tensor, ""]
    gradient_norm: Float[Tensor, ""]
    learning_rate_scale: float


def initial_state(config: RunConfig, device: torch.device | str = "cpu") -> TrainState:
    """Weights and optimisers before the first update."""
    model = build_model(config, device)
    return TrainState(model, build_optimisers(model, config), step=0)


def training_steps(
    state: TrainState, family: TaskFamily, config: RunConfig, compiled: bool = False
) -> Iterator[StepRecord]:
    """Take the updates that are left of the run, yielding a record after each.

    Args:
        state: Changed in place.
        family: Where batches come from.
        config: The run's.
        compiled: Fuse the network's kernels and, on a GPU, replay each update as one graph.
    """
    device = next(state.model.parameters()).device
    forget_compiled()
    gradients = _gradient_work(state, config, compiled)

    def whole_step(batch: Batch) -> tuple[Tensor, Tensor]:
        results = gradients(batch)
        for optimiser in state.optimisers:
            optimiser.step()
        return results

    work: StepWork
    if compiled and device.type == "cuda":
        work = CapturedWork(family.training_batch, whole_step, state.optimisers, device)
    else:
        work = lambda step: whole_step(family.training_batch(step))  # noqa: E731
    while state.step < config.num_steps:
        scale = learning_rate_scale(state.step, config.schedule, config.num_steps)
        set_learning_rates(state.optimisers, scale)
        loss, gradient_norm = work(state.step)
        state.step += 1
        yield StepRecord(state.step, loss, gradient_norm, scale)


def _gradient_work(
    state: TrainState, config: RunConfig, compiled: bool
) -> Callable[[Batch], tuple[Tensor, Tensor]]:
    """A function from a batch to loss and gradient norm: forward, backward, clipping."""
    differentiated = _differentiated(state.model, config, compiled)

    def gradients(batch: Batch) -> tuple[Tensor, Tensor]:
        for optimiser in state.optimisers:
            optimiser.zero_grad()
        for sample in range(config.optim.num_train_samples):
            with state.weights_to_differentiate(sample):
                loss = differentiated(batch)
                gradient_norm = _clipped_norm(state.model, config.optim.clip_norm)
        return loss, gradient_norm

    return gradients


def _clipped_norm(model: Network, clip_norm: float | None) -> Float[Tensor, ""]:
    """The norm of the gradients, which are cut to `clip_norm` if there is one."""
    if clip_norm is not None:
        return torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    gradients = [weights.grad for weights in model.parameters() if weights.grad is not None]
    return torch.nn.utils.get_total_norm(gradients)


def _differentiated(
    model: Network, config: RunConfig, compiled: bool
) -> Callable[[Batch], Float[Tensor, ""]]:
    """A function that returns the loss on a batch and sets the gradients of the parameters."""
    device = next(model.parameters()).device
    uses_bfloat16 = config.precision == "bfloat16" or (
        config.precision == "auto" and device.type == "cuda"
    )
    if uses_bfloat16 and isinstance(model, Transformer) and fits_kernels(model, config.batch_size):
        network = model
        return lambda batch: loss_and_gradients(network, batch.tokens_BL, batch.answers_BT)

    def loss_of(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=uses_bfloat16):
            logits_BTC = model(batch.tokens_BL)
        return mean_loss(logits_BTC, batch)

    fused_loss_of = fused(loss_of, dynamic=False) if compiled else loss_of

    def differentiated(batch: Batch) -> Tensor:
        loss = fused_loss_of(batch)
        loss.backward()
        return loss.detach()

    return differentiated


def mean_loss(logits_BTC: Float[Tensor, "B T C"], batch: Batch) -> Float[Tensor, ""]:
    """Mean cross-entropy over all answers, in float32 or wider for logits of any type."""
    wide = torch.promote_types(logits_BTC.dtype, torch.float32)
    return functional.cross_entropy(
        logits_BTC.flatten(end_dim=1).to(wide), batch.answers_BT.flatten()
    )
