"""IVON in Lightning's automatic optimisation (`pip install epigrok[lightning]`).

Return `IVON(self.parameters(), …)` from `configure_optimizers`. Without accumulation that is all:
Lightning hands the forward and backward pass to `step` as a closure. With accumulation, or with
`16-mixed`, it runs them by itself, and needs the callback below.
"""

from contextlib import ExitStack
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from epigrok.errors import UserError
from epigrok.posteriors import IVON


class SampledWeights(Callback):
    """Takes the gradients of every batch at a weight sample, as IVON needs them.

    trainer = Trainer(accumulate_grad_batches=4, callbacks=[SampledWeights()])

    All batches of a step share one sample, so the step is that of the large batch. Between
    batches the weights are the posterior's mean: validation and checkpoints see that.
    """

    def __init__(self) -> None:
        self._block = ExitStack()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Refuse what the callback cannot help with."""
        if not pl_module.automatic_optimization:
            raise UserError(
                "SampledWeights works with automatic optimisation; in manual optimisation, put "
                "forward and backward into `with optimiser.sampled_weights():` yourself"
            )
        if not all(isinstance(optimiser, IVON) for optimiser in trainer.optimizers):
            kinds = ", ".join(type(optimiser).__name__ for optimiser in trainer.optimizers)
            raise UserError(f"SampledWeights needs IVON as the optimiser, got {kinds}")

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Go to the sample."""
        for optimiser in trainer.optimizers:
            assert isinstance(optimiser, IVON)
            self._block.enter_context(optimiser.sampled_weights(0))

    def on_after_backward(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Return to the mean."""
        self._block.close()

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Return to the mean if there was nothing to differentiate."""
        self._block.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Return to the mean and forget the batch."""
        self._block.__exit__(type(exception), exception, exception.__traceback__)
