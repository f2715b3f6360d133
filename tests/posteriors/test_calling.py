"""Any network can be called; its logits and what counts are told; it stays as it is."""

from collections import UserDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.posteriors.calling import (
    counted_positions,
    explaining_wrong_inputs,
    network_logits,
    split_batch,
    swapped_logits,
)


class Sum(nn.Module):
    """Logits from two inputs, returned in the way asked for."""

    def __init__(self, wrap: Callable[[Tensor], Any] = lambda logits: logits) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.wrap = nn.Linear(4, 3), wrap

    def forward(self, x: Tensor, y: Tensor | float = 0.0) -> Any:
        return self.wrap(self.layer(x + y))


X, Y = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)), torch.ones(5, 4)


@pytest.mark.parametrize("inputs", [(X, Y), [X, Y], {"x": X, "y": Y}, UserDict(x=X, y=Y)])
def test_inputs_are_arguments_by_position_or_by_name(inputs: Any) -> None:
    model = Sum()
    assert torch.equal(network_logits(model, inputs), model.layer(X + Y))


def test_labels_are_no_input() -> None:
    model = Sum()
    batch = {"x": X, "labels": torch.zeros(5, dtype=torch.long)}
    assert torch.equal(network_logits(model, batch), model.layer(X))
    seen = network_logits(model, batch, lambda model, batch: model(batch["x"], batch["labels"][0]))
    assert torch.equal(seen, model.layer(X))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: logits,
        lambda logits: {"loss": None, "logits": logits},
        lambda logits: SimpleNamespace(logits=logits),
        lambda logits: (logits, "cache"),
        lambda logits: (logits, torch.zeros(2, 5, 6)),
    ],
)
def test_logits_are_found_in_what_a_model_returns(wrap: Callable[[Tensor], Any]) -> None:
    model = Sum(wrap)
    assert torch.equal(network_logits(model, X), model.layer(X))


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda logits: {"scores": logits}, r"mapping with \['scores'\].*pass forward="),
        (lambda logits: None, "NoneType.*pass forward="),
        (lambda logits: logits[0], r"shape \[3\]"),
        (lambda logits: logits[:, :1], r"two or more classes.*\[5, 1\]"),
        (lambda logits: logits.argmax(dim=-1, keepdim=True), "int64"),
        (lambda logits: (torch.zeros(5, 8), logits), r"several .*\[\[5, 8\], \[5, 3\]\].*forward="),
        (lambda logits: logits[:, :, None, None].expand(-1, -1, 2, 4), r"\[5, 3, 2, 4\].*movedim"),
    ],
)
def test_other_outputs_are_refused(wrap: Callable[[Tensor], Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        network_logits(Sum(wrap), X)


def test_forward_says_where_the_classes_of_an_image_are() -> None:
    """Classes in the second dimension, as of a convolution, were once taken to be the last."""
    model = Sum(lambda logits: logits[:, :, None, None].expand(-1, -1, 2, 4))
    found = network_logits(model, X, lambda model, inputs: model(inputs).movedim(1, -1))
    assert torch.equal(found[:, 1, 3], model.layer(X))


def test_inputs_that_a_model_does_not_take_are_explained() -> None:
    model = Sum(lambda logits: logits + "1")
    with (
        pytest.raises(
            UserError, match=r"Sum does not take these inputs: .*without labels.*forward="
        ),
        explaining_wrong_inputs(model, (X, X, X), None),
    ):
        network_logits(model, (X, X, X))
    # A mistake inside the model is its own.
    with (
        pytest.raises(TypeError, match=r"unsupported|must be"),
        explaining_wrong_inputs(model, X, None),
    ):
        network_logits(model, X)


def test_forward_gets_the_model_itself_with_the_swapped_weights_in_it() -> None:
    model, weight = Sum(), torch.ones(3, 4)
    found = swapped_logits(
        model, {"layer.weight": weight}, X, lambda model, inputs: model.layer(inputs)
    )
    assert torch.equal(found, X @ weight.T + model.layer.bias)
    for name, tensor in (("head", weight), ("layer.weight", weight[:2])):
        with pytest.raises(UserError, match=f"another model: .*{name!r}.* pass the model that"):
            swapped_logits(model, {name: tensor}, X)


def test_a_batch_is_a_pair_or_a_mapping_with_labels() -> None:
    labels, mapping = torch.zeros(5), {"x": X, "labels": torch.ones(5)}
    assert split_batch((X, labels)) == (X, labels)
    assert split_batch(mapping) == (mapping, mapping["labels"])
    assert split_batch(X) == (X, None)
    with pytest.raises(UserError, match="3 parts"):
        split_batch((X, Y, labels))


def test_padding_ignored_labels_and_the_mask_do_not_count() -> None:
    logits = torch.zeros(2, 3, 7)
    inputs = {"attention_mask": torch.tensor([[1, 1, 0], [1, 1, 1]])}
    labels = torch.tensor([[5, -100, 5], [5, 5, 5]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = counted_positions(logits, inputs, labels, mask=mask)
    assert found.tolist() == [[True, False, False], [True, True, False]]
    assert counted_positions(logits, inputs, labels, ignore_index=5).sum() == 1
    # A pooled prediction has read the padding mask already.
    assert counted_positions(logits[:, 0], inputs).all()
    # Rows may be flattened sequences.
    assert torch.equal(
        counted_positions(logits.flatten(0, 1), inputs, labels, mask=mask), found.flatten()
    )
    with pytest.raises(UserError, match=r"the labels: shape \[2\], the predictions' is \[2, 3\]"):
        counted_positions(logits, labels=torch.zeros(2))
    with pytest.raises(UserError, match=r"the attention mask: shape \[2, 3\]"):
        counted_positions(logits[:, 1:], inputs)


def test_a_decoder_has_a_mask_of_its_own() -> None:
    """The encoder's, if it happened to have the same shape, once left out positions."""
    inputs = {"attention_mask": torch.tensor([[1, 0]]), "decoder_input_ids": torch.ones(1, 2)}
    assert counted_positions(torch.zeros(1, 2, 7), inputs).all()
    inputs["decoder_attention_mask"] = torch.tensor([[0, 1]])
    assert counted_positions(torch.zeros(1, 2, 7), inputs).tolist() == [[False, True]]
