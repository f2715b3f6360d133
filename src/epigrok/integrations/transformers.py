"""IVON and the monitor in the `Trainer` of Transformers (`pip install epigrok[transformers]`).

`GrokMonitorCallback` looks at any model while it trains. For IVON, the trainer builds the optimiser
itself, after it has moved the model:

    trainer = IVONTrainer(
        model, TrainingArguments(…), train_dataset=…,
        optimizer_cls_and_kwargs=(IVON, {"lr": 0.1, "ess": 1e5}),
    )
    trainer.train()
    posterior = trainer.posterior()

Learning-rate schedule, weight decay, accumulation, clipping, bfloat16 and resuming are those of
`TrainingArguments`. Its default `max_grad_norm` of 1 clips gradients, and with them IVON's estimate
of the Hessian; 0 turns it off.
"""

import warnings
from collections import ChainMap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.extras import extra_named
from epigrok.integrations.look_plan import LookPlan
from epigrok.monitor import GrokMonitor
from epigrok.posteriors import IVON, DiagonalGaussian, evaluating

with extra_named():
    from transformers import (
        Trainer,
        TrainerCallback,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )

_LOOKS = "grok_monitor.json"


class IVONMixin:
    """Takes the gradients of every batch at a weight sample; put it before any `Trainer`.

    All batches of a step share one sample, so an accumulated step is that of the large batch.
    """

    args: Any
    compute_loss_func: Any
    model: Any
    model_accepts_loss_kwargs: bool
    optimizer: Any
    _is_scaling_checked = False

    @property
    def ivon(self) -> IVON:
        """The optimiser, out of the wrapper that the trainer puts around it."""
        found = getattr(self.optimizer, "optimizer", self.optimizer)
        if not isinstance(found, IVON):
            raise UserError(
                f"IVONTrainer needs IVON as the optimiser, got {type(found).__name__}; pass "
                "optimizer_cls_and_kwargs=(IVON, {'lr': …, 'ess': …})"
            )
        return found

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> Tensor:
        """Forward and backward pass of a batch, at a weight sample."""
        trainer: Any = super()
        if self.args.gradient_accumulation_steps > 1 and not self._is_scaling_checked:
            self._check_scaling(model, inputs, num_items_in_batch)
        with self.ivon.sampled_weights(0):
            loss: Tensor = trainer.training_step(model, inputs, num_items_in_batch)
        return loss

    def _check_scaling(self, model: nn.Module, inputs: dict[str, Any], num_items: Any) -> None:
        """Have the trainer divide accumulated losses if the model does not do it.

        The trainer relies on every model that takes any keyword to divide its loss by the number of
        labels in all batches of the step. Many heads for classification ignore that number, and
        gradients come out too large by the number of batches. Adam does not notice; IVON does.
        """
        self._is_scaling_checked = True
        if num_items is None or self.compute_loss_func or not self.model_accepts_loss_kwargs:
            return
        trainer: Any = self
        prepared = trainer._prepare_inputs(inputs)
        with evaluating(model):
            once, twice = (
                trainer.compute_loss(model, dict(prepared), num_items_in_batch=number)
                for number in (num_items, 2 * num_items)
            )
        self.model_accepts_loss_kwargs = bool(twice < 0.75 * once)

    def posterior(self, seed: int = 0) -> DiagonalGaussian:
        """The posterior over the model's parameters, as far as it is trained."""
        return self.ivon.posterior(self.model, seed)


class IVONTrainer(IVONMixin, Trainer):
    """`transformers.Trainer` for IVON."""


class GrokMonitorCallback(TrainerCallback):
    """Looks every so many steps, adds the numbers to the log, and stops training if asked.

    ```python
    monitor = GrokMonitor(model, seen=train_set, watched={"held out": eval_set})
    trainer = Trainer(model, …)
    trainer.add_callback(GrokMonitorCallback(monitor, LookPlan(every=50), log=trainer.log))
    ```

    `log=trainer.log` sends every look to TensorBoard, W&B and what else the trainer reports to;
    without it they are in `trainer.state.log_history` only. Looks are saved beside every
    checkpoint, so a resumed run goes on with them.
    """

    def __init__(
        self,
        monitor: GrokMonitor,
        plan: LookPlan | None = None,
        log: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """A monitor of the model that is trained, how to use it, and what its looks are given to.

        A callback does not know its trainer, so `log` has to be passed.
        """
        self.monitor, self._plan, self._log = monitor, plan or LookPlan(), log

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
        if not self._plan.is_due(self.monitor, state.global_step):
            return
        # Looked up in the newest entry first.
        logged = ChainMap(*reversed(state.log_history))
        reading = self._plan.look(self.monitor, state.global_step, logged)
        assert reading is not None
        entry: dict[str, Any] = dict(reading.flat())
        if self._log is None:
            state.log_history.append({"step": state.global_step, **entry})
        else:
            # The trainer takes this for its own log of the step and would leave that out.
            is_log_due = control.should_log
            self._log(entry)
            control.should_log = is_log_due
        if self._plan.stops(self.monitor):
            control.should_training_stop = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Save the looks beside the checkpoint."""
        if state.is_world_process_zero:
            self.monitor.save(_saved(args, state))


def _saved(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}" / _LOOKS
