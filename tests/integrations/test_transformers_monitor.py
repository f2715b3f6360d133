"""In a real Hugging Face run: looks, log, early stop, and a resumed run that remembers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from taught_network import HELD_OUT_X, SEEN_X, taught_labels, untaught_network
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from transformers import (
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from epigrok.integrations.look_plan import LookPlan
from epigrok.integrations.transformers import GrokMonitorCallback
from epigrok.monitor import GrokMonitor

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


class Taught(nn.Module):
    """As the `Trainer` wants a model: a loss where there are labels."""

    def __init__(self) -> None:
        super().__init__()
        self.network = untaught_network()

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.network(x)
        return {"logits": logits} | (
            {} if labels is None else {"loss": cross_entropy(logits, labels)}
        )


class Rows(Dataset[dict[str, Tensor]]):
    def __init__(self, x: Tensor) -> None:
        self._x, self._labels = x, taught_labels(x)

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"x": self._x[index], "labels": self._labels[index]}


def monitor_and_trainer(folder: Path, num_steps: int) -> tuple[GrokMonitor, Any]:
    model = Taught()
    monitor = GrokMonitor(model, Rows(SEEN_X), {"held out": Rows(HELD_OUT_X)})
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=num_steps, per_device_train_batch_size=len(SEEN_X),
        learning_rate=1e-2, lr_scheduler_type="constant", logging_steps=10, save_steps=40,
        report_to="none", disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False,
        remove_unused_columns=False,
    )  # fmt: skip
    return monitor, Trainer(model, arguments, train_dataset=Rows(SEEN_X))


def trained(
    folder: Path, num_steps: int, plan: LookPlan, resume: str | None = None
) -> tuple[GrokMonitorCallback, Any]:
    monitor, trainer = monitor_and_trainer(folder, num_steps)
    callback = GrokMonitorCallback(monitor, plan)
    trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=resume)
    return callback, trainer


LOOKING = LookPlan(every=10, train_loss="loss")


def test_it_looks_logs_announces_and_a_resumed_run_remembers(tmp_path: Path) -> None:
    callback, trainer = trained(tmp_path, 80, LOOKING)
    assert [look.step for look in callback.monitor.readings] == list(range(10, 90, 10))
    entries = [entry for entry in trainer.state.log_history if "held out/state" in entry]
    assert [entry["step"] for entry in entries] == list(range(10, 90, 10))
    resumed, _ = trained(tmp_path, 60, LOOKING, str(tmp_path / "checkpoint-40"))
    looks = resumed.monitor.readings
    assert [look.step for look in looks] == [10, 20, 30, 40, 50, 60]
    assert looks[:4] == callback.monitor.readings[:4]


def test_it_stops_training_when_asked(tmp_path: Path) -> None:
    callback, trainer = trained(tmp_path, 500, LookPlan(every=10, stop_when="generalised"))
    assert trainer.state.global_step == callback.monitor.events[-1].step < 500


def test_without_its_file_a_resumed_run_says_that_it_starts_anew(tmp_path: Path) -> None:
    trained(tmp_path, 40, LOOKING)
    (tmp_path / "checkpoint-40" / "grok_monitor.json").unlink()
    with pytest.warns(UserWarning, match="knows nothing of the first 40 steps"):
        resumed, _ = trained(tmp_path, 60, LOOKING, str(tmp_path / "checkpoint-40"))
    assert [look.step for look in resumed.monitor.readings] == [50, 60]
    assert torch.isfinite(torch.tensor(resumed.monitor.readings[-1]["held out"].tolerance))


class Logger(TrainerCallback):
    """What TensorBoard's and W&B's callbacks get."""

    def __init__(self) -> None:
        self.logs: list[tuple[int, set[str]]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.logs.append((state.global_step, set(logs)))


def test_looks_reach_other_loggers_beside_the_logs_of_the_trainer(tmp_path: Path) -> None:
    monitor, trainer = monitor_and_trainer(tmp_path, 40)
    logger = Logger()
    trainer.add_callback(logger)
    trainer.add_callback(GrokMonitorCallback(monitor, LookPlan(every=5), log=trainer.log))
    trainer.train()
    for name, every in (("held out/tolerance_ratio", 5), ("loss", 10)):
        expected = list(range(every, 41, every))
        assert [step for step, names in logger.logs if name in names] == expected
        history = trainer.state.log_history
        assert [entry["step"] for entry in history if name in entry] == expected


class Unread(list[dict[str, float]]):
    """A log that nobody may read as a whole."""

    def __iter__(self) -> Any:
        raise AssertionError("the log was read")

    __reversed__ = __iter__


def test_the_log_is_read_only_when_a_look_is_due(tmp_path: Path) -> None:
    monitor = GrokMonitor(untaught_network(), SEEN_X, {"held out": HELD_OUT_X})
    callback = GrokMonitorCallback(monitor, LOOKING)
    arguments, control = TrainingArguments(output_dir=str(tmp_path)), TrainerControl()
    callback.on_step_end(arguments, TrainerState(global_step=7, log_history=Unread()), control)
    entries = [{"loss": 3.0}, {"loss": 2.0}, {"accuracy": 0.5}]
    callback.on_step_end(arguments, TrainerState(global_step=10, log_history=entries), control)
    assert [(look.step, look.train_loss) for look in monitor.readings] == [(10, 2.0)]
