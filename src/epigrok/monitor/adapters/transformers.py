"""A Hugging Face `Trainer` callback that looks at the model while it trains."""

import warnings
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from epigrok.monitor.adapters.plan import LookPlan
from epigrok.monitor.monitor import GrokMonitor

_FILE = "grok_monitor.json"


class GrokMonitorCallback(TrainerCallback):
    """Looks every so many steps, adds the numbers to the log, and stops training if asked.

    ```python
    monitor = GrokMonitor(model, seen=train_set, watched={"held out": eval_set})
    trainer = Trainer(model, …, callbacks=[GrokMonitorCallback(monitor, LookPlan(every=50))])
    ```

    Its looks are saved beside every checkpoint, so a resumed run goes on with them.
    """

    def __init__(self, monitor: GrokMonitor, plan: LookPlan | None = None) -> None:
        """A monitor of the model that is trained, and how to use it."""
        self.monitor, self._plan = monitor, plan or LookPlan()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Go on with the looks of the checkpoint that training resumes from."""
        if state.global_step == 0:
            return
        saved = _saved(args, state)
        if saved.exists():
            self.monitor.load(saved)
        elif not self.monitor.readings:
            warnings.warn(
                f"{saved} is not there, so the monitor knows nothing of the first "
                f"{state.global_step} steps",
                stacklevel=2,
            )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Look if it is time to."""
        logged = {name: value for entry in state.log_history for name, value in entry.items()}
        reading = self._plan.look(self.monitor, state.global_step, logged)
        if reading is None:
            return
        entry: dict[str, Any] = {"step": state.global_step, **reading.flat()}
        state.log_history.append(entry)
        if self._plan.stops(self.monitor):
            control.should_training_stop = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Save the looks beside the checkpoint."""
        if state.is_world_process_zero:
            self.monitor.save(_saved(args, state))


def _saved(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}" / _FILE
