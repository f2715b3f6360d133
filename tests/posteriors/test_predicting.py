"""Predictions under a posterior: uncertainties, what counts, and a model that is left alone."""

from copy import deepcopy
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import DataLoader

import epigrok
from epigrok.errors import UserError
from epigrok.posteriors import (
    DiagonalLaplace,
    Ensemble,
    ExactLaplace,
    LastLayerLaplace,
    Point,
    WeightNoise,
    predicting,
)
from epigrok.uncertainty import decompose

INPUTS = torch.randn(7, 4, generator=torch.Generator().manual_seed(1))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


def plain_loop(model: nn.Module, posterior: Any, num_samples: int) -> Tensor:
    """Probabilities under each sample, the way anybody would write it."""
    model = model.eval()
    with torch.no_grad():
        return torch.stack(
            [
                functional_call(model, dict(posterior.sample(i)), (INPUTS,)).double().softmax(-1)
                for i in range(num_samples)
            ]
        )


def test_it_is_the_decomposition_of_a_plain_loop_over_samples() -> None:
    model = network()
    posterior = WeightNoise.relative(model, 0.3)
    found = epigrok.predict(model.train(), posterior, INPUTS, num_samples=5)
    probs_SNC = plain_loop(model, posterior, 5)
    expected = decompose(probs_SNC)
    assert found.num_samples == 5
    torch.testing.assert_close(found.probs, probs_SNC.mean(dim=0))
    for name in ("total", "aleatoric", "epistemic"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))
    # Decomposing a list of samples is the same.
    torch.testing.assert_close(decompose(list(probs_SNC)).epistemic, expected.epistemic)


@pytest.mark.parametrize(("kept", "block"), [(0, 4), (1 << 24, 1 << 22)])
def test_nothing_depends_on_what_is_kept_or_on_the_size_of_blocks(
    kept: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = network()
    posterior = WeightNoise.relative(model, 0.3)
    expected = epigrok.predict(model, posterior, INPUTS, num_samples=5)
    monkeypatch.setattr(predicting, "ELEMENTS_KEPT", kept)
    monkeypatch.setattr(predicting, "elements_per_block", lambda device: block)
    found = epigrok.predict(model, posterior, INPUTS, num_samples=5)
    torch.testing.assert_close(found.probs, expected.probs)
    for name in predicting.UNCERTAINTIES:
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))
    probs = plain_loop(model, posterior, 5)
    entropies = torch.special.entr(probs).sum(-1)
    torch.testing.assert_close(found.standard_errors.aleatoric, entropies.std(0) / 5**0.5)


def test_dropout_and_train_mode_add_nothing() -> None:
    """Dropout once made EU 0.043 at noise 1e-9."""
    model = network().train()
    found = epigrok.predict(model, WeightNoise.relative(model, 1e-9), INPUTS)
    assert found.epistemic.max() < 1e-12
    assert model.training


def test_laplace_samples_of_any_network_are_parameters_by_name() -> None:
    """They once were called "head", a name that `functional_call` ignores: EU exactly 0."""
    model = network()
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    laplace = LastLayerLaplace.fit(model, [(INPUTS, labels)], prior=1.0)
    assert set(laplace.sample(0).keys()) == {"3.weight", "3.bias"}
    expected = decompose(plain_loop(model, laplace, 8)).epistemic
    assert expected.min() > 0
    found = epigrok.predict(model, laplace, INPUTS, num_samples=8).epistemic
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_tied_head_is_no_set_of_parameters() -> None:
    embedding, layer = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    layer.weight = embedding.weight
    model, tokens = nn.Sequential(embedding, nn.Tanh(), layer), torch.arange(5)[None]
    laplace = LastLayerLaplace.fit(model, [(tokens, tokens)], prior=1.0)
    with pytest.raises(UserError, match=r"shared with the rest of the model.*use predict"):
        dict(laplace.sample(0))
    assert epigrok.predict(model, laplace, tokens).epistemic.min() > 0


def test_an_ensemble_uses_all_of_its_members_and_a_point_is_certain() -> None:
    model, other = network(), network()
    nn.init.normal_(other[3].weight)
    found = epigrok.predict(model, Ensemble.of([model, other]), INPUTS, num_samples=16)
    assert found.num_samples == 2
    assert 0 < found.epistemic.max() <= log(2)
    certain = epigrok.predict(model, Point.of(model), INPUTS)
    assert certain.epistemic.eq(0).all()
    assert certain.standard_errors.epistemic.isnan().all()


def test_positions_that_do_not_count_have_no_numbers() -> None:
    class PerToken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 3)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
            return {"logits": self.table(input_ids) * attention_mask[..., None]}

    model, tokens = PerToken(), torch.arange(8).view(2, 4)
    batch = {"input_ids": tokens, "attention_mask": (tokens != 7).long(), "labels": tokens}
    mask = tokens != 0
    found = epigrok.predict(model, WeightNoise.relative(model, 0.5), batch, mask=mask)
    assert found.is_counted.tolist() == [[False, True, True, True], [True, True, True, False]]
    for values in (found.epistemic, found.probs.sum(-1), found.standard_errors.total):
        assert values.shape == (2, 4)
        assert torch.equal(values.isfinite(), found.is_counted)
    assert "probs [2, 4, 3], 6 count, 16 samples" in repr(found)


def test_where_a_batch_has_no_label_the_prediction_does_not_count() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(8, 3)

        def forward(self, input_ids: Tensor) -> Tensor:
            return self.table(input_ids)

    model, tokens = Tokens(), torch.arange(8).view(2, 4)
    batch = {"input_ids": tokens, "labels": tokens.masked_fill(tokens % 2 == 0, -100)}
    found = epigrok.predict(model, WeightNoise.relative(model, 0.5), batch)
    assert torch.equal(found.is_counted, tokens % 2 == 1)
    assert torch.equal(found.epistemic.isnan(), ~found.is_counted)


def test_what_cannot_be_predicted_is_refused() -> None:
    model = network()
    with pytest.raises(UserError, match="a whole number of samples, got 0"):
        epigrok.predict(model, WeightNoise.relative(model, 0.1), INPUTS, num_samples=0)
    with pytest.raises(UserError, match="'isotropic' are not finite"):
        epigrok.predict(model, WeightNoise.isotropic(model, 1e38), INPUTS)
    with pytest.raises(UserError, match="got LastLayerLaplace"):
        epigrok.predict(model, LastLayerLaplace, INPUTS)
    with pytest.raises(UserError, match="one batch, got DataLoader"):
        epigrok.predict(model, Point.of(model), DataLoader(INPUTS))
    with pytest.raises(UserError, match="does not take these inputs"):
        epigrok.predict(model, Point.of(model), (INPUTS, torch.zeros(7)))


def test_probabilities_are_not_taken_for_logits() -> None:
    """Their softmax is nearly uniform, so that everything looked uncertain."""
    model = network()
    probs = nn.Sequential(model, nn.Softmax(dim=-1))
    noise = WeightNoise.relative(probs, 0.3)
    with pytest.raises(UserError, match=r"returns probabilities.*\.log\(\)"):
        epigrok.predict(probs, noise, INPUTS)
    found = epigrok.predict(probs, noise, INPUTS, forward=lambda model, x: model(x).log())
    direct = epigrok.predict(probs, noise, INPUTS, forward=lambda model, x: model[0](x))
    torch.testing.assert_close(found.total, direct.total, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("kind", [LastLayerLaplace, DiagonalLaplace, ExactLaplace])
def test_a_head_posterior_is_refused_where_the_head_is_another(kind: Any) -> None:
    """It once predicted with the old head on the features of a network that trained on."""
    model, labels = network(), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    posterior = kind.fit(model, [(INPUTS, labels)], prior=1.0)
    epigrok.predict(deepcopy(model).bfloat16(), posterior, INPUTS.bfloat16())
    with torch.no_grad():
        model[3].bias += 0.1
    with pytest.raises(UserError, match=r"fitted to .* other weights.* fit it again"):
        epigrok.predict(model, posterior, INPUTS)
    with pytest.raises(UserError, match=r"Head\(3 x 8 .* the model's Head\(5 x 8 "):
        epigrok.predict(nn.Sequential(*model[:3], nn.Linear(8, 5)), posterior, INPUTS)
