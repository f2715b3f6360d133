"""A Lightning run that memorises, then groks: the callback says when, and stops training.

    python examples/grokking_in_lightning.py

Addition modulo 29 with a small MLP: a few seconds on a CPU. No held-out label is used.
"""

import logging

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split

from epigrok import GrokMonitor
from epigrok.integrations.lightning import GrokMonitorCallback
from epigrok.integrations.look_plan import LookPlan

MODULUS = 29
MOST_STEPS = 2000


class Adder(LightningModule):
    """(a, b) -> logits of a + b modulo 29."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(MODULUS, 64)
        self.hidden = nn.Linear(128, 128)
        self.head = nn.Linear(128, MODULUS)

    def forward(self, pairs: Tensor) -> Tensor:
        """One row of logits for each pair."""
        return self.head(self.hidden(self.embedding(pairs).flatten(1)).relu())

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Cross-entropy, and the accuracy that tells the monitor what is fitted."""
        pairs, sums = batch
        logits = self(pairs)
        self.log("train_accuracy", (logits.argmax(dim=1) == sums).float().mean())
        return cross_entropy(logits, sums)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Strong weight decay, which makes it grok."""
        return torch.optim.AdamW(self.parameters(), lr=1e-2, weight_decay=2.0, betas=(0.9, 0.98))


def main() -> None:
    """Train until the monitor announces that held-out sums are generalised."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    seed_everything(0, verbose=False)
    pairs = torch.cartesian_prod(torch.arange(MODULUS), torch.arange(MODULUS))
    table = TensorDataset(pairs, pairs.sum(dim=1) % MODULUS)
    train_set, held_out = random_split(table, [0.7, 0.3])

    module = Adder()
    monitor = GrokMonitor(
        module,
        seen=train_set,
        watched={"held out": held_out},
        on_event=lambda event: print(f"step {event.step}: {event.watched} is {event.state}"),
    )
    plan = LookPlan(every=25, train_accuracy="train_accuracy", stop_when="generalised")
    trainer = Trainer(
        max_steps=MOST_STEPS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[GrokMonitorCallback(monitor, plan)],
    )
    trainer.fit(module, DataLoader(train_set, batch_size=len(train_set)))

    # Labels come in only now, to see whether it was right.
    inputs, sums = next(iter(DataLoader(held_out, batch_size=len(held_out))))
    accuracy = float((module(inputs).argmax(dim=1) == sums).float().mean())
    print(f"stopped at step {trainer.global_step}; held-out accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
