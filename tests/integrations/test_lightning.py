"""IVON in a real Lightning trainer gives the posterior of the plain loop."""

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from small_network import SETTINGS, batch, network, state_of, take_steps
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from epigrok.errors import UserError
from epigrok.integrations.lightning import SampledWeights
from epigrok.posteriors import IVON

# Lightning advises on workers, loggers and versions of torch.
pytestmark = pytest.mark.filterwarnings("ignore")

NUM_STEPS, BATCH_SIZE = 6, 20


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = network(torch.float32)
        self.fails_at = -1
        self.is_at_mean: list[bool] = []

    def training_step(self, rows: list[Tensor], index: int) -> Tensor:
        if index == self.fails_at:
            raise ArithmeticError("boom")
        return functional.cross_entropy(self.network(rows[0]), rows[1])

    def validation_step(self, rows: list[Tensor], index: int) -> None:
        weights = torch.cat([p.flatten() for p in self.parameters()])
        mean = self.trainer.optimizers[0].state[next(self.parameters())]["mean"]
        self.is_at_mean.append(torch.equal(weights, mean))

    def configure_optimizers(self) -> IVON:
        return IVON(self.parameters(), **SETTINGS)


class AdamClassifier(Classifier):
    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters())


class ManualClassifier(Classifier):
    automatic_optimization = False


def rows_of(num_batches: int = 1) -> DataLoader:
    """The batches of the plain loop, each cut into parts."""
    pairs = [batch(step, torch.float32) for step in range(NUM_STEPS)]
    data = TensorDataset(*(torch.cat(parts) for parts in zip(*pairs)))
    return DataLoader(data, batch_size=BATCH_SIZE // num_batches)


def trainer_for(num_batches: int = 1, is_sampled: bool = True, **settings: Any) -> pl.Trainer:
    quiet = ("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "logger")
    return pl.Trainer(
        accelerator="cpu",
        num_sanity_val_steps=0,
        accumulate_grad_batches=num_batches,
        callbacks=[SampledWeights()] if is_sampled else [],
        **(dict.fromkeys(quiet, False) | {"max_epochs": 1} | settings),
    )


def fitted(num_batches: int = 1, is_sampled: bool = True, **settings: Any) -> Tensor:
    trainer = trainer_for(num_batches, is_sampled, **settings)
    trainer.fit(Classifier(), rows_of(num_batches))
    return state_of(trainer.optimizers[0])


def plain_state(clip_norm: float | None = None) -> Tensor:
    model = network(torch.float32)
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(NUM_STEPS), clip_norm=clip_norm)
    return state_of(optimiser)


@pytest.mark.parametrize("num_batches", [1, 2, 4])
def test_accumulated_steps_are_those_of_the_plain_loop(num_batches: int) -> None:
    torch.testing.assert_close(fitted(num_batches), plain_state(), rtol=1e-4, atol=1e-6)


def test_without_accumulation_no_callback_is_needed() -> None:
    torch.testing.assert_close(fitted(is_sampled=False), plain_state(), rtol=1e-4, atol=1e-6)


def test_accumulation_without_the_callback_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"needs the callback epigrok.integrations.lightning"):
        fitted(num_batches=2, is_sampled=False)


@pytest.mark.parametrize(("num_batches", "is_sampled"), [(1, False), (1, True), (4, True)])
def test_clipping_is_that_of_the_plain_loop(num_batches: int, is_sampled: bool) -> None:
    clipped = fitted(num_batches, is_sampled, gradient_clip_val=0.1)
    torch.testing.assert_close(clipped, plain_state(clip_norm=0.1), rtol=1e-4, atol=1e-6)
    assert not torch.allclose(clipped, plain_state(), rtol=0.1)


def test_autocast_changes_the_posterior_by_less_than_its_width() -> None:
    num_weights = sum(p.numel() for p in network().parameters())
    mean, exact = (s[:num_weights] for s in (fitted(precision="bf16-mixed"), plain_state()))
    width = (SETTINGS["ess"] * (SETTINGS["hess_init"] + SETTINGS["weight_decay"])) ** -0.5
    assert 0.0 < (mean - exact).abs().max() < 0.2 * width


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    first = trainer_for(2)
    first.fit(Classifier(), rows_of(2))
    first.save_checkpoint(tmp_path / "first-epoch.ckpt")
    resumed = trainer_for(2, max_epochs=2)
    path = tmp_path / "first-epoch.ckpt"
    resumed.fit(Classifier(), rows_of(2), ckpt_path=path, weights_only=True)
    assert torch.equal(state_of(resumed.optimizers[0]), fitted(2, max_epochs=2))


def test_validation_between_two_batches_of_a_step_sees_the_mean() -> None:
    model = Classifier()
    trainer = trainer_for(4, val_check_interval=2)
    trainer.fit(model, rows_of(4), rows_of())
    assert len(model.is_at_mean) == NUM_STEPS * 2 * NUM_STEPS
    assert all(model.is_at_mean)
    torch.testing.assert_close(state_of(trainer.optimizers[0]), plain_state(), rtol=1e-4, atol=1e-6)


def test_an_exception_leaves_the_mean() -> None:
    model = Classifier()
    model.fails_at = 5
    trainer = trainer_for(2)
    with pytest.raises(ArithmeticError):
        trainer.fit(model, rows_of(2))
    model.validation_step([], 0)
    assert model.is_at_mean == [True]


@pytest.mark.parametrize(
    ("model", "message"),
    [(AdamClassifier, "needs IVON as the optimiser, got Adam"), (ManualClassifier, "yourself")],
)
def test_what_the_callback_cannot_help_with_is_refused(model: type, message: str) -> None:
    with pytest.raises(UserError, match=message):
        trainer_for().fit(model(), rows_of())
