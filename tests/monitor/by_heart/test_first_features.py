"""Features of an untrained network: their units, what is left out, and the way through a file."""

import json

import pytest
import torch
from torch import nn

from epigrok.errors import UserError
from epigrok.monitor import SEEN
from epigrok.monitor.by_heart.first_features import (
    features_from_json,
    features_to_json,
    first_features,
)
from epigrok.posteriors import Head, HeadInputs, head_inputs
from epigrok.random_streams import normal, stream_key


def drawn(name: str, *shape: int) -> torch.Tensor:
    return normal(stream_key(0, name), shape)


def test_first_features_are_in_units_of_their_spread_and_survive_a_file() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 3))
    sets = {SEEN: drawn("x", 100, 6), "held out": drawn("watched", 80, 6)}
    found = first_features({n: head_inputs(model, x) for n, x in sets.items()})
    spread_D = found[SEEN].std(dim=0, correction=0)
    torch.testing.assert_close(spread_D, torch.ones_like(spread_D), atol=1e-3, rtol=0)
    again = features_from_json(json.loads(json.dumps(features_to_json(found))))
    assert all(torch.equal(again[name], found[name]) for name in found)


def test_constant_features_are_left_out_and_of_many_some_are_taken() -> None:
    features = torch.cat([drawn("x", 50, 1500), torch.full((50, 3), 0.1)], dim=1)
    head = Head(weight_CD=torch.zeros(2, 1503))
    found = first_features({SEEN: HeadInputs(features_ND=features, head=head)})
    assert found[SEEN].shape == (50, 1024)
    constant = HeadInputs(features_ND=features[:, -3:], head=Head(weight_CD=torch.zeros(2, 3)))
    assert first_features({SEEN: constant})[SEEN].shape == (50, 0)


@pytest.mark.parametrize("values", [None, [1], {SEEN: [2, 2, "AAAA"]}, {SEEN: [1, 1, "not it"]}])
def test_what_was_not_written_by_it_is_damaged(values: object) -> None:
    with pytest.raises(UserError, match="damaged"):
        features_from_json(values)
