"""Networks as other people write them, each with data, and a copy whose head is its own."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

WIDTH, CLASSES, VOCABULARY = 8, 3, 13


@dataclass(frozen=True)
class Case:
    """A network with data."""

    model: nn.Module
    loader: list[Any]
    inputs: Any
    untied: nn.Module
    """The same function with a head that nothing else uses."""
    head: str
    """Name of that head's layer in `untied`."""

    def call(self, model: nn.Module) -> Tensor:
        """Logits, the way its author would get them."""
        output = model(**self.inputs) if isinstance(self.inputs, dict) else model(self.inputs)
        if isinstance(output, dict):
            return output["logits"]
        return output


class ResidualCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH)
        self.block = nn.Sequential(
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH), nn.ReLU()
        )
        self.dropout, self.fc = nn.Dropout(0.3), nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.norm(self.stem(images)).relu()
        hidden = hidden + self.block(hidden)
        return self.fc(self.dropout(hidden.mean(dim=(2, 3))))


class EncoderClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.classifier(self.encoder(self.embedding(tokens)).mean(dim=1))


class TiedDecoder(nn.Module):
    """A head that is the embedding, without a layer; `out` takes its place once untied."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.body = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Dropout(0.2))
        self.out: nn.Linear | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.body(self.embedding(tokens))
        return linear(hidden, self.embedding.weight) if self.out is None else self.out(hidden)

    def untie(self) -> None:
        self.out = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.out.weight.data = self.embedding.weight.detach().clone()


class WithDict(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, WIDTH), nn.GELU(), nn.Dropout(0.2))
        self.heads = nn.ModuleDict({"a": nn.Linear(WIDTH, CLASSES), "b": nn.Linear(WIDTH, CLASSES)})

    def forward(self, x: Tensor, scale: float = 1.0) -> dict[str, Tensor]:
        hidden = self.body(x * scale)
        return {"auxiliary": self.heads["b"](hidden), "logits": self.heads["a"](hidden)}


def _pairs(inputs: Tensor, num_classes: int) -> list[tuple[Tensor, Tensor]]:
    labels = torch.randint(num_classes, inputs.shape[:1])
    return list(zip(inputs.split(5), labels.split(5)))


def mlp() -> Case:
    model = nn.Sequential(
        nn.Linear(4, WIDTH), nn.ReLU(), nn.Dropout(0.2), nn.Linear(WIDTH, CLASSES)
    )
    x = torch.randn(13, 4)
    return Case(model, _pairs(x[3:], CLASSES), x[:3], deepcopy(model), "3")


def cnn() -> Case:
    model, images = ResidualCNN(), torch.randn(10, 1, 4, 4)
    # Averages of batch norm that are not those of its beginning.
    model.train()(3.0 * images + 1.0)
    return Case(model, _pairs(images, CLASSES), images[:3], deepcopy(model), "fc")


def encoder() -> Case:
    model, tokens = EncoderClassifier(), torch.randint(VOCABULARY, (10, 5))
    return Case(model, _pairs(tokens, CLASSES), tokens[:3], deepcopy(model), "classifier")


def tied() -> Case:
    model, untied, tokens = TiedDecoder(), TiedDecoder(), torch.randint(VOCABULARY, (6, 4))
    untied.load_state_dict(model.state_dict())
    untied.untie()
    labels = torch.randint(VOCABULARY, (6, 4)).masked_fill(torch.rand(6, 4) < 0.3, -100)
    return Case(model, list(zip(tokens.split(3), labels.split(3))), tokens[:2], untied, "out")


def with_dict() -> Case:
    model, x = WithDict(), torch.randn(10, 4)
    loader = [{"x": part, "labels": labels} for part, labels in _pairs(x, CLASSES)]
    return Case(model, loader, {"x": x[:3], "scale": 0.5}, deepcopy(model), "heads.a")


def _hugging_face(name: str, head: str, per_token: bool) -> Case:
    transformers = pytest.importorskip("transformers")
    is_bert = name.startswith("Bert")
    config = (
        transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=8,
            num_labels=CLASSES,
        )
        if is_bert
        else transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=WIDTH,
            n_layer=2,
            n_head=2,
            n_positions=8,
            num_labels=CLASSES,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )
    model = getattr(transformers, name)(config)
    # As initialised, these heads are so small that all uncertainty is one number.
    for weights in model.parameters():
        weights.data *= 5.0 if weights.ndim > 1 else 1.0
    tokens = torch.randint(3, VOCABULARY, (6, 5))
    attention = torch.ones_like(tokens)
    attention[1, 3:] = attention[4, 2:] = 0
    tokens = tokens.masked_fill(attention == 0, 0)
    labels = tokens.masked_fill(attention == 0, -100) if per_token else tokens[:, 0] % CLASSES
    if per_token and is_bert:
        labels = labels.masked_fill(torch.rand(6, 5) < 0.4, -100)
    batch = {"input_ids": tokens, "attention_mask": attention, "labels": labels}
    loader = [
        {key: value[rows] for key, value in batch.items()} for rows in (slice(3), slice(3, 6))
    ]
    inputs = {key: value[:2] for key, value in batch.items() if key != "labels"}
    return Case(model, loader, inputs, _untied(model, head), head)


def _untied(model: Any, head: str) -> nn.Module:
    """A copy in which the head is a layer of its own."""
    twin = type(model)(model.config)
    twin.load_state_dict(model.state_dict())
    old = twin.get_submodule(head)
    new = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None)
    new.load_state_dict({name: value.clone() for name, value in old.state_dict().items()})
    parent, _, name = head.rpartition(".")
    setattr(twin.get_submodule(parent), name, new)
    return twin


CASES: dict[str, Callable[[], Case]] = {
    "mlp": mlp,
    "cnn": cnn,
    "encoder": encoder,
    "gpt2-classifier": lambda: _hugging_face("GPT2ForSequenceClassification", "score", False),
    "gpt2-next-token": lambda: _hugging_face("GPT2LMHeadModel", "lm_head", True),
    "bert-classifier": lambda: _hugging_face("BertForSequenceClassification", "classifier", False),
    "bert-masked-token": lambda: _hugging_face("BertForMaskedLM", "cls.predictions.decoder", True),
    "tied": tied,
    "dict": with_dict,
}


def made(name: str, seed: int = 0) -> Case:
    """A network by name, in training mode, with some of its weights frozen."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        case = CASES[name]()
    case.untied.eval()
    case.model.train()
    next(iter(case.model.parameters())).requires_grad_(False)
    return case
