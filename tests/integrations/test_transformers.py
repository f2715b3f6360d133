"""IVON in a real `transformers.Trainer` gives the posterior of the plain loop."""

from pathlib import Path
from typing import Any

import pytest
import torch
from small_network import state_of
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)

from epigrok.errors import UserError
from epigrok.integrations.transformers import IVONTrainer
from epigrok.posteriors import IVON
from epigrok.random_streams import integers, stream_key

# Transformers warns of its own settings.
pytestmark = pytest.mark.filterwarnings("ignore")

SETTINGS = {"lr": 0.1, "ess": 500.0, "hess_init": 0.4, "betas": (0.9, 0.97), "clip_radius": 0.6}
DECAY, NUM_STEPS, BATCH_SIZE = 0.01, 4, 8
SMALL = {"vocab_size": 16, "bos_token_id": 0, "eos_token_id": 1}


def classifier() -> nn.Module:
    """Its head ignores the number of labels that the trainer tells it."""
    torch.manual_seed(0)
    config = BertConfig(
        **SMALL,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def language_model() -> nn.Module:
    """Its head divides by that number; its output is tied to its embedding."""
    torch.manual_seed(0)
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    sizes = {"n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(**SMALL, **rates, **sizes))
    # Else the trainer counts first tokens too, which nothing predicts, and divides by too much.
    model.loss_type = "ForCausalLM"
    return model


MODELS = {"classifier": classifier, "language model": language_model}


def dataset(kind: str) -> list[dict[str, Tensor]]:
    tokens = integers(stream_key(0, "tokens"), 16, (NUM_STEPS * BATCH_SIZE, 6))
    return [{"input_ids": t, "labels": t[0] % 3 if kind == "classifier" else t} for t in tokens]


def arguments(folder: Path, num_batches: int = 1, **settings: Any) -> TrainingArguments:
    return TrainingArguments(
        str(folder),
        per_device_train_batch_size=BATCH_SIZE // num_batches,
        gradient_accumulation_steps=num_batches,
        num_train_epochs=1,
        weight_decay=DECAY,
        lr_scheduler_type="constant",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **({"max_grad_norm": 0.0, "save_strategy": "no"} | settings),
    )


class InOrder(IVONTrainer):
    """Batches in the order of the plain loop."""

    def _get_train_sampler(self, *_: Any) -> Any:
        return torch.utils.data.SequentialSampler(self.train_dataset)


def trainer_for(kind: str, folder: Path, num_batches: int = 1, **settings: Any) -> InOrder:
    return InOrder(
        MODELS[kind](),
        arguments(folder, num_batches, **settings),
        train_dataset=dataset(kind),
        optimizer_cls_and_kwargs=(IVON, SETTINGS),
    )


def trained(kind: str, folder: Path, num_batches: int = 1, **settings: Any) -> Tensor:
    trainer = trainer_for(kind, folder, num_batches, **settings)
    trainer.train()
    return state_of(trainer.ivon)


def plain_state(kind: str, folder: Path, clip_norm: float = float("inf")) -> Tensor:
    """The same steps in a loop of one's own, with the groups that the trainer makes."""
    model = MODELS[kind]()
    names = Trainer(model, arguments(folder)).get_decay_parameter_names(model)
    decayed, rest = (
        [p for name, p in model.named_parameters() if (name in names) == is_decayed]
        for is_decayed in (True, False)
    )
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}]
    optimiser = IVON(groups, **SETTINGS)
    rows = dataset(kind)
    for start in range(0, len(rows), BATCH_SIZE):
        part = rows[start : start + BATCH_SIZE]
        inputs = {name: torch.stack([row[name] for row in part]) for name in part[0]}
        with optimiser.sampled_weights():
            model(**inputs).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimiser.step()
    return state_of(optimiser)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("num_batches", [1, 2, 4])
def test_accumulated_steps_are_those_of_the_plain_loop(
    kind: str, num_batches: int, tmp_path: Path
) -> None:
    expected = plain_state(kind, tmp_path)
    torch.testing.assert_close(trained(kind, tmp_path, num_batches), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_batches", [1, 4])
def test_clipping_is_that_of_the_plain_loop(num_batches: int, tmp_path: Path) -> None:
    clipped = trained("classifier", tmp_path, num_batches, max_grad_norm=0.1)
    expected = plain_state("classifier", tmp_path, clip_norm=0.1)
    torch.testing.assert_close(clipped, expected, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(clipped, plain_state("classifier", tmp_path), rtol=0.1)


def test_a_run_resumed_from_its_own_checkpoint_is_the_uninterrupted_one(tmp_path: Path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 2}
    whole = trained("language model", tmp_path, 2, **saving)
    resumed = trainer_for("language model", tmp_path, 2, **saving)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert torch.equal(state_of(resumed.ivon), whole)


def test_autocast_changes_the_posterior_by_less_than_its_width(tmp_path: Path) -> None:
    trainer = trainer_for("classifier", tmp_path, bf16=True)
    trainer.train()
    exact = trainer_for("classifier", tmp_path)
    exact.train()
    ours, theirs = trainer.posterior(), exact.posterior()
    off = max(
        ((ours.mean[name] - theirs.mean[name]) / width).abs().max().item()
        for name, width in theirs.deviation.items()
    )
    assert 0.0 < off < 0.2


def test_a_model_in_bfloat16_is_trained_with_a_wide_state(tmp_path: Path) -> None:
    trainer = InOrder(
        classifier().to(torch.bfloat16),
        arguments(tmp_path, 2),
        train_dataset=dataset("classifier"),
        optimizer_cls_and_kwargs=(IVON, SETTINGS),
    )
    trainer.train()
    assert state_of(trainer.ivon).dtype == torch.float32
    assert next(trainer.model.parameters()).dtype == torch.bfloat16


def test_only_an_adapter_is_trained_over_a_frozen_backbone(tmp_path: Path) -> None:
    model = classifier()
    model.bert.requires_grad_(False)
    backbone = torch.cat([p.flatten().clone() for p in model.bert.parameters()])
    trainer = IVONTrainer(
        model,
        arguments(tmp_path, 2),
        train_dataset=dataset("classifier"),
        optimizer_cls_and_kwargs=(IVON, SETTINGS),
    )
    trainer.train()
    assert torch.equal(torch.cat([p.flatten() for p in model.bert.parameters()]), backbone)
    assert set(trainer.posterior().deviation) == {"classifier.weight", "classifier.bias"}


def test_an_accumulated_step_that_fails_leaves_every_mode_as_it_was(tmp_path: Path) -> None:
    trainer = trainer_for("language model", tmp_path, 2)
    trainer.create_optimizer()
    model = trainer.model.train()
    frozen = model.transformer.wpe.eval()
    unknown = torch.full((1, 6), 99)
    with pytest.raises(IndexError):
        trainer.training_step(model, {"input_ids": unknown, "labels": unknown}, torch.tensor(5))
    assert model.training
    assert not frozen.training


def test_a_plain_trainer_is_refused_and_so_is_another_optimiser(tmp_path: Path) -> None:
    plain = Trainer(
        classifier(),
        arguments(tmp_path),
        train_dataset=dataset("classifier"),
        optimizer_cls_and_kwargs=(IVON, SETTINGS),
    )
    with pytest.raises(RuntimeError, match="IVONTrainer"):
        plain.train()
    adam = IVONTrainer(classifier(), arguments(tmp_path), train_dataset=dataset("classifier"))
    with pytest.raises(UserError, match="needs IVON as the optimiser, got AdamW"):
        adam.train()
