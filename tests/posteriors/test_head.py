"""The head is found by watching one pass, whatever the network; what cannot be told is refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from epigrok.errors import UserError
from epigrok.posteriors.head import HeadPass, NoHeadError, head_inputs, head_pass

INPUTS = torch.randn(6, 5, 4, generator=torch.Generator().manual_seed(1))


class Network(nn.Module):
    """Two layers and a head over a sequence; subclasses say what becomes of the logits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5))
        self.score = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.score(self.body(x))


class LastRealToken(Network):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[torch.arange(6), torch.tensor([4, 3, 2, 4, 1, 0])]


class Masked(Network):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[x[..., 0] > 0]


class Flattened(Network):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).flatten(0, 1)


class Capped(Network):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * torch.tanh(super().forward(x))


class MeanOfPositions(Network):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).mean(dim=1)


class TwoHeads(Network):
    """A second head is called last, but its output is not returned."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Any:
        hidden = self.body(x)
        return {"logits": self.score(hidden), "values": self.value(hidden)}


class Tied(nn.Module):
    """The head is the embedding, used without a layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.body = nn.Embedding(7, 4), nn.Linear(4, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return linear(self.body(self.embedding(tokens)), self.embedding.weight)


def checked(model: nn.Module, inputs: Any = INPUTS, **options: Any) -> HeadPass:
    """The pass, whose features must give the model's own logits through the head."""
    found = head_pass(model.train(), inputs, **options)
    assert model.training
    logits = linear(found.features, found.head.weight_CD, found.head.bias_C)
    torch.testing.assert_close(logits, found.logits)
    return found


@pytest.mark.parametrize("kind", [Network, LastRealToken, Masked, Flattened, TwoHeads])
def test_features_give_the_logits_through_the_head(kind: type[Network]) -> None:
    model = kind()
    found = checked(model)
    assert (found.head.weight_name, found.head.bias_name) == ("score.weight", "score.bias")
    assert not found.head.is_shared
    model.eval()
    wanted = model(INPUTS)
    assert torch.equal(found.logits, wanted["logits"] if isinstance(wanted, dict) else wanted)


def test_a_head_tied_to_an_embedding_is_found_and_known_to_be_shared() -> None:
    tokens = torch.arange(6).view(2, 3)
    found = checked(Tied(), tokens)
    assert found.head.weight_name == "embedding.weight"
    assert found.head.is_shared
    model = Tied()
    layer = nn.Linear(4, 7, bias=False)
    layer.weight = model.embedding.weight
    as_layer = nn.Sequential(model.embedding, model.body, layer)
    for name in (None, "2", "0", "0.weight"):
        assert checked(as_layer, tokens, head=name).head.is_shared


def test_a_padded_token_is_no_row() -> None:
    model = Network()
    mask = torch.tensor([[1, 1, 1, 0, 0]]).expand(6, 5)
    batch = {"x": INPUTS, "attention_mask": mask}
    found = head_inputs(model, batch, lambda model, batch: model(batch["x"]))
    assert found.features_ND.shape == (18, 4)
    fewer = head_inputs(model, INPUTS, mask=mask)
    assert torch.equal(fewer.features_ND, found.features_ND)


def test_a_head_may_be_named() -> None:
    both = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    for layer in both:
        layer.weight.data = torch.eye(4)
    with pytest.raises(UserError, match=r"several layers.*\['0.weight', '1.weight'\]"):
        head_pass(both, INPUTS)
    assert checked(both, head="0").head.weight_name == "0.weight"
    assert checked(both, head="1.weight").head.weight_name == "1.weight"
    with pytest.raises(UserError, match=r"'score' in its.*\['0.weight', '1.weight'\]"):
        head_pass(both, INPUTS, head="score")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Capped(), r"not that of its last linear layer 'score.weight'.*at \[\d, \d, \d\], by"),
        (MeanOfPositions(), r"\[6, 3\] and are not rows of .*\[6, 5, 3\]"),
        (nn.Tanh(), "no linear layer"),
    ],
)
def test_logits_that_are_not_the_heads_are_refused(model: nn.Module, message: str) -> None:
    with pytest.raises(UserError, match=message):
        head_pass(model, INPUTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda logits: logits.mul_(0.5),
        lambda logits: logits[..., 0].fill_(-9.0),
        lambda logits: logits.view(-1).add_(1.0),
    ],
    ids=["all", "one class", "a view"],
)
def test_logits_changed_in_place_are_not_the_heads(
    change: Callable[[Tensor], Any],
) -> None:
    """They lie where the head wrote its own, so that nobody can compare the two."""

    def forward(model: Network, x: Tensor) -> Tensor:
        logits = model(x)
        change(logits)
        return logits

    head_pass(Network(), INPUTS)
    with pytest.raises(NoHeadError, match="in place what its last linear layer"):
        head_pass(Network(), INPUTS, forward)


def test_a_model_with_changed_logits_can_return_those_of_its_head() -> None:
    found = checked(Capped(), forward=lambda model, x: model.score(model.body(x)))
    assert found.head.weight_name == "score.weight"


def test_picked_rows_that_cannot_be_told_apart_are_refused() -> None:
    model = LastRealToken()
    nn.init.zeros_(model.score.weight)
    with pytest.raises(UserError, match="different features give the same logits"):
        head_pass(model, INPUTS)


def test_half_precision_logits_keep_their_features() -> None:
    found = head_pass(Network().bfloat16(), INPUTS.bfloat16())
    assert found.features.dtype == torch.float32
    assert found.head.weight_CD.dtype == torch.float32


def plain_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def test_features_and_head_give_the_networks_own_logits() -> None:
    model, inputs = plain_network().train(), torch.randn(10, 4)
    found = head_inputs(model, inputs)
    assert model.training
    torch.testing.assert_close(found.logits(), model.eval()(inputs))
    assert found.features_ND.shape == (10, 8)


def test_further_training_does_not_change_what_was_found() -> None:
    model, inputs = plain_network(), torch.randn(10, 4)
    found = head_inputs(model, inputs)
    before = found.logits().clone()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(found.logits(), before)


def test_an_exception_leaves_the_mode_as_it_was() -> None:
    model = plain_network().train()

    def fail(model: nn.Module, inputs: Tensor) -> Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        head_inputs(model, torch.randn(2, 4), forward=fail)
    assert model.training
