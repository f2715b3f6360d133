"""The multilayer perceptron of the classic family."""

import math

import pytest
import torch

from epigrok.config import MLPConfig, preset
from epigrok.model import build_model
from epigrok.model.mlp import MLP, initialise_mlp


def test_it_starts_with_the_norm_of_standard_initialisation() -> None:
    model = build_model(preset("classic"))
    norm = math.sqrt(sum(weights.square().sum().item() for weights in model.parameters()))
    # 59 x 128 standard normal embeddings, and 1/3 per unit and row of the linear layers.
    assert norm == pytest.approx(math.sqrt(59 * 128 + (256 + 256 + 59) / 3), rel=0.02)


def test_features_match_layers_written_out() -> None:
    model = MLP(MLPConfig(embedding_width=3, hidden_width=4, num_hidden_layers=2), 7).double()
    initialise_mlp(model, run_seed=0)
    tokens = torch.tensor([[1, 5, 6], [2, 2, 0]])
    for row, found in zip(tokens, model.features(tokens), strict=True):
        hidden = torch.cat([model.embedding.weight[row[0]], model.embedding.weight[row[1]]])
        for layer in model.layers:
            assert isinstance(layer, torch.nn.Linear)
            hidden = (layer.weight @ hidden + layer.bias).clamp_min(0.0)
        torch.testing.assert_close(found, hidden[None])


def test_the_answer_itself_is_not_read() -> None:
    model = build_model(preset("classic"))
    tokens = torch.tensor([[1, 5, 6], [1, 5, 9]])
    first, second = model(tokens)
    assert torch.equal(first, second)


def test_its_only_answer_is_its_last() -> None:
    model = build_model(preset("classic"))
    tokens = torch.tensor([[1, 5, 6], [2, 2, 0]])
    assert torch.equal(model.last_features(tokens), model.features(tokens))
