"""A Lightning callback that looks at the model while it trains."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from epigrok.monitor.adapters.plan import LookPlan
from epigrok.monitor.monitor import GrokMonitor


class GrokMonitorCallback(Callback):
    """Looks every so many steps, logs the numbers, and stops training if asked.

    ```python
    monitor = GrokMonitor(module, seen=train_loader, watched={"held out": val_loader})
    trainer = Trainer(callbacks=[GrokMonitorCallback(monitor, LookPlan(every=50))])
    ```

    Its looks are part of every checkpoint, so a resumed run goes on with them.
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
        pl_module.log_dict(numbers)
        if self._plan.stops(self.monitor):
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """All looks, for the checkpoint."""
        return self.monitor.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the looks of a checkpoint."""
        self.monitor.load_state_dict(state_dict)
