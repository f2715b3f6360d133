"""Products with a model's parameters are seen, whoever computes them."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from epigrok.posteriors.linear_calls import LinearCalls, picked_rows


class TwoWays(nn.Module):
    """A layer, and a product with the weight of an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(5, 4), nn.Linear(4, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        assert self.table.weight.shape == (5, 4)
        return linear(self.layer(self.table(tokens)), self.table.weight)


def test_products_and_uses_are_counted() -> None:
    model = TwoWays()
    with LinearCalls(model, None) as seen:
        logits = model(torch.arange(5))
    assert [call.weight_name for call in seen.calls] == ["layer.weight", "table.weight"]
    assert seen.calls[0].bias_name == "layer.bias"
    assert torch.equal(seen.calls[1].output, logits)
    # Once as a look-up and once as a head; asking for its shape is no use.
    assert seen.num_uses == {"table.weight": 2, "layer.weight": 1, "layer.bias": 1}
    with LinearCalls(model, "table") as seen:
        model(torch.arange(5))
    assert [call.weight_name for call in seen.calls] == ["table.weight"]


def test_rows_are_told_by_their_numbers() -> None:
    model = TwoWays()
    with LinearCalls(model, "table") as seen:
        logits = model(torch.arange(5))
    (call,) = seen.calls
    rows = torch.tensor([3, 0, 3])
    found = picked_rows(call, logits[rows])
    assert found is not None
    assert torch.equal(found, rows)
    assert picked_rows(call, logits[rows] + 1e-3) is None
    assert picked_rows(call, logits[:, :3]) is None
