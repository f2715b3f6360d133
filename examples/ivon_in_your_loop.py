"""IVON in a plain loop, in Lightning and in Transformers: one posterior.

    pip install epigrok[lightning,transformers]
    python examples/ivon_in_your_loop.py [EPOCHS]

Trains one classifier in several ways: batches whole or accumulated from parts, without a stop or
resumed half-way, in float32 or bfloat16. For each it prints how far the posterior is from that of
the plain loop: the root mean square of the difference of means, in standard deviations of the
posterior, and the median ratio of the standard deviations. Then what people want of it, the
epistemic uncertainty (EU) on rows like the training data and on rows three times as far out. The
second line, with other noise, says how much of a difference is mere chance.
"""

import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import lightning
import torch
import transformers
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from epigrok import decompose
from epigrok.integrations.lightning import SampledWeights
from epigrok.integrations.transformers import IVONTrainer
from epigrok.posteriors import IVON, DiagonalGaussian

NUM_ROWS, BATCH_SIZE = 1024, 64
Trained = tuple[nn.Module, DiagonalGaussian]


class Classifier(lightning.LightningModule):
    """Says whether the product of two inputs is positive."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.seed = seed
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """As Transformers wants it."""
        logits = self.layers(inputs)
        return {"loss": cross_entropy(logits, labels), "logits": logits}

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        """As Lightning wants it."""
        del index
        return self(*batch)["loss"]

    def configure_optimizers(self) -> IVON:
        """The one optimiser of all ways."""
        return IVON(
            self.parameters(),
            lr=0.1,
            ess=NUM_ROWS,
            hess_init=0.05,
            weight_decay=1e-3,
            betas=(0.9, 0.999),
            seed=self.seed,
        )


def dataset() -> TensorDataset:
    """Rows of eight numbers; one label in ten is wrong."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(NUM_ROWS, 8, generator=generator)
    is_wrong = torch.rand(NUM_ROWS, generator=generator) < 0.1
    return TensorDataset(x, ((x[:, 0] * x[:, 1] > 0) ^ is_wrong).long())


def in_a_plain_loop(num_epochs: int, seed: int = 0) -> Trained:
    """What the others are compared with."""
    model = Classifier(seed)
    optimiser = model.configure_optimizers()
    for _ in range(num_epochs):
        for batch in DataLoader(dataset(), BATCH_SIZE):
            optimiser.zero_grad()
            with optimiser.sampled_weights():
                model.training_step(batch, 0).backward()
            optimiser.step()
    return model, optimiser.posterior(model)


def in_lightning(
    num_epochs: int, num_parts: int, folder: Path, is_resumed: bool = False, **settings: Any
) -> Trained:
    """Every batch in `num_parts` parts."""

    def trainer_until(epoch: int) -> lightning.Trainer:
        quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
        return lightning.Trainer(
            max_epochs=epoch,
            accelerator="cpu",
            accumulate_grad_batches=num_parts,
            callbacks=[SampledWeights()],
            **dict.fromkeys(quiet, False),
            **settings,
        )

    rows = DataLoader(dataset(), BATCH_SIZE // num_parts)
    path = folder / "half.ckpt" if is_resumed else None
    if path is not None:
        first = trainer_until(num_epochs // 2)
        first.fit(Classifier(), rows)
        first.save_checkpoint(path)
    trainer, model = trainer_until(num_epochs), Classifier()
    trainer.fit(model, rows, ckpt_path=path, weights_only=True)
    return model, trainer.optimizers[0].posterior(model)


def in_transformers(
    num_epochs: int, num_parts: int, folder: Path, is_resumed: bool = False, **settings: Any
) -> Trained:
    """The same with their trainer."""
    half = num_epochs // 2 * NUM_ROWS // BATCH_SIZE

    def trainer_until(last_step: int) -> IVONTrainer:
        model = Classifier()
        arguments = transformers.TrainingArguments(
            str(folder),
            max_steps=last_step,
            per_device_train_batch_size=BATCH_SIZE // num_parts,
            gradient_accumulation_steps=num_parts,
            train_sampling_strategy="sequential",
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            save_steps=half,
            save_strategy="steps" if is_resumed else "no",
            use_cpu=True,
            disable_tqdm=True,
            report_to=[],
            logging_strategy="no",
            **settings,
        )
        rows = [{"inputs": x, "labels": y} for x, y in dataset()]
        optimisers = (model.configure_optimizers(), None)
        trainer = IVONTrainer(model, arguments, train_dataset=rows, optimizers=optimisers)
        trainer.remove_callback(transformers.PrinterCallback)
        return trainer

    if is_resumed:
        trainer_until(half).train()
    trainer = trainer_until(num_epochs * NUM_ROWS // BATCH_SIZE)
    trainer.train(resume_from_checkpoint=str(folder / f"checkpoint-{half}") if is_resumed else None)
    return trainer.model, trainer.posterior()


@torch.no_grad()
def epistemic(trained: Trained, x: Tensor) -> float:
    """Mean epistemic uncertainty in nats, from 32 weight samples."""
    model, posterior = trained
    labels = torch.zeros(len(x), dtype=torch.long)
    logits = [
        functional_call(model, dict(posterior.sample(index)), (x, labels))["logits"]
        for index in range(32)
    ]
    return decompose(torch.stack(logits).softmax(dim=-1)).epistemic.mean().item()


def flat(weights: Any) -> Tensor:
    """All parameters in one row."""
    return torch.cat([weights[name].flatten() for name in sorted(weights)])


def main(num_epochs: int, folder: Path) -> None:
    """Print one line for each way of training."""
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    plain = in_a_plain_loop(num_epochs)
    ways = {"plain loop": lambda: plain, "other noise": lambda: in_a_plain_loop(num_epochs, seed=1)}
    for name, train, bfloat16 in (
        ("Lightning", in_lightning, {"precision": "bf16-mixed"}),
        ("Transformers", in_transformers, {"bf16": True}),
    ):
        for parts in (1, 2, 4):
            ways[f"{name}, parts: {parts}"] = lambda f=train, n=parts: f(num_epochs, n, folder)
        ways[f"{name}, resumed"] = lambda f=train: f(num_epochs, 2, folder, is_resumed=True)
        ways[f"{name}, bfloat16"] = lambda f=train, b=bfloat16: f(num_epochs, 1, folder, **b)
    x = dataset().tensors[0]
    width = flat(plain[1].deviation)
    print(f"{'way':<22}  means differ by  ratio of widths  EU near  EU far")
    for name, train in ways.items():
        trained = train()
        off = ((flat(trained[1].mean) - flat(plain[1].mean)) / width).square().mean().sqrt()
        ratio = (flat(trained[1].deviation) / width).median()
        near, far = (epistemic(trained, scale * x) for scale in (1.0, 3.0))
        print(f"{name:<22}  {off:>14.4f}σ  {ratio:>15.4f}  {near:7.4f}  {far:6.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, Path(temporary))
