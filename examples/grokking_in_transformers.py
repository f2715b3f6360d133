"""A Hugging Face run that memorises, then groks: the callback says when, and stops training.

    python examples/grokking_in_transformers.py

Addition modulo 23 with a one-layer GPT-2: ten seconds on a CPU core. No held-out label is used.
"""

import tempfile

import torch
from torch.utils.data import Dataset, random_split
from transformers import (
    GPT2Config,
    GPT2ForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from epigrok import GrokMonitor
from epigrok.integrations.look_plan import LookPlan
from epigrok.integrations.transformers import GrokMonitorCallback

MODULUS = 23
MOST_STEPS = 600


class Sums(Dataset[dict[str, torch.Tensor]]):
    """All pairs of numbers below the modulus, with their sums."""

    def __len__(self) -> int:
        return MODULUS**2

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        first, second = divmod(index, MODULUS)
        return {
            "input_ids": torch.tensor([first, second]),
            "labels": torch.tensor((first + second) % MODULUS),
        }


def main() -> None:
    """Train until the monitor announces that held-out sums are generalised."""
    set_seed(0)
    train_set, held_out = random_split(Sums(), [0.7, 0.3])
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(
        vocab_size=MODULUS + 1, n_positions=2, n_embd=64, n_layer=1, n_head=2, num_labels=MODULUS,
        bos_token_id=None, eos_token_id=None, pad_token_id=MODULUS, initializer_range=0.1,
        **no_dropout,
    )  # fmt: skip
    model = GPT2ForSequenceClassification(config)
    monitor = GrokMonitor(
        model,
        seen=train_set,
        watched={"held out": held_out},
        on_event=lambda event: print(f"step {event.step}: {event.watched} is {event.state}"),
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=MOST_STEPS, per_device_train_batch_size=len(train_set),
            learning_rate=5e-3, weight_decay=2.0, adam_beta2=0.98, lr_scheduler_type="constant",
            logging_steps=25, save_strategy="no", report_to="none", disable_tqdm=True,
            use_cpu=True, dataloader_pin_memory=False,
        )  # fmt: skip
        plan = LookPlan(every=25, train_loss="loss", stop_when="generalised")
        trainer = Trainer(model, arguments, train_dataset=train_set)
        # With `log=trainer.log`, looks also go to what `report_to` names, such as TensorBoard.
        trainer.add_callback(GrokMonitorCallback(monitor, plan))
        trainer.train()

    # Labels come in only now, to see whether it was right.
    rows = [held_out[index] for index in range(len(held_out))]
    inputs = torch.stack([row["input_ids"] for row in rows])
    sums = torch.stack([row["labels"] for row in rows])
    answers = model(input_ids=inputs).logits.argmax(dim=1)
    accuracy = float((answers == sums).float().mean())
    print(f"stopped at step {trainer.state.global_step}; held-out accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
