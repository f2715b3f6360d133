"""In a real Lightning run: looks, log, early stop, and a resumed run that remembers."""

import csv
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from taught_network import HELD_OUT_X, SEEN_X, taught_labels, untaught_network
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger

from epigrok.integrations.lightning import GrokMonitorCallback
from epigrok.integrations.look_plan import LookPlan
from epigrok.monitor import GrokMonitor

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
LOADER = DataLoader(TensorDataset(SEEN_X, taught_labels(SEEN_X)), batch_size=len(SEEN_X))
PLAN = LookPlan(every=10, train_accuracy="train_accuracy")


class Taught(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = untaught_network()

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)

    def training_step(self, batch: list[Tensor]) -> Tensor:
        x, y = batch
        logits = self(x)
        self.log("train_accuracy", (logits.argmax(dim=1) == y).float().mean())
        return cross_entropy(logits, y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def trained(
    num_steps: int, plan: LookPlan = PLAN, resume: Path | None = None
) -> tuple[GrokMonitorCallback, Any]:
    module = Taught()
    callback = GrokMonitorCallback(GrokMonitor(module, LOADER, {"held out": HELD_OUT_X}), plan)
    trainer = Trainer(
        max_steps=num_steps, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback],
    )  # fmt: skip
    trainer.fit(module, LOADER, ckpt_path=resume)
    return callback, trainer


def test_it_looks_tells_numbers_and_announces() -> None:
    callback, trainer = trained(120)
    assert [look.step for look in callback.monitor.readings] == list(range(10, 130, 10))
    assert callback.monitor.states == {"held out": "generalised"}
    logged = trainer.callback_metrics["held out/tolerance_ratio"]
    last = callback.monitor.readings[-1]["held out"].tolerance_ratio
    assert float(logged) == pytest.approx(last, rel=1e-5)


def test_every_look_reaches_loggers_and_callbacks(tmp_path: Path) -> None:
    module, name = Taught(), "held out/tolerance_ratio"
    monitor = GrokMonitor(module, LOADER, {"held out": HELD_OUT_X})
    kept = ModelCheckpoint(tmp_path, monitor=name, every_n_train_steps=20, save_top_k=-1)
    logger = CSVLogger(tmp_path)
    trainer = Trainer(
        max_steps=110, accelerator="cpu", logger=logger, enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[GrokMonitorCallback(monitor, LookPlan(every=20)), kept],
    )  # fmt: skip
    trainer.fit(module, LOADER)
    ratios = {look.step: look["held out"].tolerance_ratio for look in monitor.readings}
    assert list(ratios) == [20, 40, 60, 80, 100]
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        logged = {int(row["step"]): float(row[name]) for row in csv.DictReader(file) if row[name]}
    assert logged == ratios
    found = [float(score) for score in kept.best_k_models.values()]
    assert found == pytest.approx(list(ratios.values()), rel=1e-5)


def test_it_stops_training_when_asked() -> None:
    callback, trainer = trained(500, LookPlan(every=10, stop_when="generalised"))
    assert trainer.global_step == callback.monitor.events[-1].step < 500


def test_a_resumed_run_has_the_looks_of_the_checkpoint_and_goes_on(tmp_path: Path) -> None:
    callback, trainer = trained(40)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    resumed, _ = trained(80, resume=tmp_path / "last.ckpt")
    steps = [look.step for look in resumed.monitor.readings]
    assert steps == list(range(10, 90, 10))
    assert resumed.monitor.readings[:4] == callback.monitor.readings
