"""IVON and the monitor in Lightning (`pip install epigrok[lightning]`).

For IVON, return `IVON(self.parameters(), …)` from `configure_optimizers`. With automatic
optimisation and without accumulation that is all: Lightning hands the forward and backward pass to
`step` as a closure. With accumulation, or with `16-mixed`, Lightning runs them itself, and
`SampledWeights` must put the weights at a sample. `GrokMonitorCallback` looks at any model.
"""

from contextlib import ExitStack
from typing import Any

from epigrok.errors import UserError
from epigrok.extras import extra_named
from epigrok.integrations.look_plan import LookPlan
from epigrok.monitor import GrokMonitor
from epigrok.posteriors import IVON

with extra_named():
    from lightning.pytorch import Callback, LightningModule, Trainer


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


class GrokMonitorCallback(Callback):
    """Looks every so many steps, logs the numbers, and stops training if asked.

    ```python
    monitor = GrokMonitor(module, seen=train_loader, watched={"held out": val_loader})
    trainer = Trainer(callbacks=[GrokMonitorCallback(monitor, LookPlan(every=50))])
    ```

    Every look goes to all loggers, whatever `log_every_n_steps` is. Other callbacks find its
    numbers by name, as in `ModelCheckpoint(monitor="held out/tolerance_ratio", mode="max")`. The
    looks are part of every checkpoint, so a resumed run goes on with them.
    """

    def __init__(self, monitor: GrokMonitor, plan: LookPlan | None = None) -> None:
        """A monitor of the module that is trained, and how to use it."""
        self.monitor, self._plan = monitor, plan or LookPlan()

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Look if it is time to."""
        del outputs, batch, batch_idx
        reading = self._plan.look(self.monitor, trainer.global_step, trainer.callback_metrics)
        if reading is None:
            return
        numbers = {name: float(v) for name, v in reading.flat().items() if not isinstance(v, str)}
        # Other callbacks, such as `ModelCheckpoint`, find them here. A logger would get few of them
        # this way, those at every `log_every_n_steps`, and one step early.
        pl_module.log_dict(numbers, logger=False)
        for logger in trainer.loggers:
            logger.log_metrics(numbers, step=reading.step)
            logger.save()
        if self._plan.stops(self.monitor):
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """All looks, for the checkpoint."""
        return self.monitor.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the looks of a checkpoint."""
        self.monitor.load_state_dict(state_dict)
