"""Kronecker factors of a softmax head's curvature."""

import math

import pytest
import torch
from head_problems import curvature_of, head_problem, kronecker_product
from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.posteriors import Head, head_curvature
from epigrok.posteriors.exact_laplace import exact_curvature
from epigrok.posteriors.head_curvature import labelled_features, require_head
from epigrok.random_streams import normal, stream_key


def test_kronecker_factors_are_exact_where_all_features_are_equal() -> None:
    _, weight, answers = head_problem()
    features = normal(stream_key(0, "one"), (1, 6)).double().repeat(40, 1)
    curvature = curvature_of(features, weight, answers)
    product = kronecker_product(curvature)
    torch.testing.assert_close(
        product, exact_curvature(Head(weight_CD=weight), [(features, answers)]).matrix
    )


def test_factors_do_not_depend_on_how_the_data_is_cut() -> None:
    features, weight, answers = head_problem()
    whole, cut = (curvature_of(features, weight, answers, chunk) for chunk in (40, 3))
    torch.testing.assert_close(whole.class_factor_CC, cut.class_factor_CC)
    torch.testing.assert_close(whole.feature_factor_DD, cut.feature_factor_DD)
    assert whole.negative_log_likelihood == pytest.approx(cut.negative_log_likelihood)
    assert cut.num_answers == 40


def test_the_curvature_of_certain_predictions_keeps_its_digits() -> None:
    """p(1 - p) of a class that has all but 1e-18 of the probability is 1e-18, not zero."""
    features = torch.ones(3, 1, dtype=torch.float64)
    weight = torch.tensor([[40.0], [0.0], [-1.0]], dtype=torch.float64)
    curvature = curvature_of(features, weight, torch.zeros(3, dtype=torch.int64))
    other, third = math.exp(-40.0), math.exp(-41.0)
    diagonal = 3 * torch.tensor([other + third, other, third], dtype=torch.float64)
    torch.testing.assert_close(curvature.class_factor_CC.diagonal(), diagonal, rtol=1e-12, atol=0)


def test_the_loss_is_that_of_the_answers() -> None:
    features, weight, answers = head_problem()
    loss = torch.nn.functional.cross_entropy(features @ weight.T, answers, reduction="sum")
    found = curvature_of(features, weight, answers).negative_log_likelihood
    assert found == pytest.approx(loss.item())


def test_eigenvectors_put_the_factors_together_again() -> None:
    curvature = curvature_of(*head_problem())
    pairs = (
        (curvature.class_eigen, curvature.class_factor_CC),
        (curvature.feature_eigen, curvature.feature_factor_DD),
    )
    for (values, basis), factor in pairs:
        assert values.min() >= 0.0
        torch.testing.assert_close((basis * values) @ basis.T, factor)
    assert curvature.class_eigen is curvature.class_eigen


def test_a_fit_to_nothing_or_to_what_is_not_finite_is_refused() -> None:
    features, weight, answers = head_problem()
    with pytest.raises(UserError, match="at least one answer"):
        head_curvature(Head(weight_CD=weight), [])
    features[3, 2] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        curvature_of(features, weight, answers)


def test_a_weight_without_its_bias_is_refused_and_the_layer_is_right() -> None:
    """The weight of a layer with bias was once accepted: EU 1.326 instead of 1.361."""
    features, _, answers = head_problem()
    layer = nn.Linear(6, 4).double()
    with pytest.raises(UserError, match=r"got Parameter; use Head.of\(layer\)"):
        require_head(layer.weight)
    found = head_curvature(Head.of(layer), [(features, answers)])
    loss = nn.functional.cross_entropy(layer(features), answers, reduction="sum")
    assert found.negative_log_likelihood == pytest.approx(loss.item())
    ones = torch.cat([features, torch.ones(40, 1, dtype=torch.float64)], dim=1)
    torch.testing.assert_close(found.feature_factor_DD, ones.T @ ones / 40)


def test_too_many_classes_for_a_square_matrix_are_refused() -> None:
    with pytest.raises(UserError, match=r"9000 classes is too large.*use DiagonalLaplace"):
        head_curvature(Head(weight_CD=torch.zeros(9000, 2)), [])


def batches(labels: Tensor) -> list[dict[str, Tensor]]:
    return [{"x": features, "labels": part} for features, part in zip(X.split(2), labels.split(2))]


X = normal(stream_key(0, "inputs"), (4, 3, 6))


class PerToken(nn.Module):
    """Logits for every token of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.score = nn.Linear(6, 5), nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.score(self.body(x).tanh())


class PerTokenForCausalLM(PerToken):
    """Named as Hugging Face names models whose labels are the tokens themselves."""


def test_answers_are_the_labelled_positions_of_all_batches() -> None:
    model = PerToken()
    labels = torch.arange(12).view(4, 3) % 4
    labels[0, 1] = labels[3, 2] = -100
    head, answers = labelled_features(model, batches(labels))
    parts = list(answers)
    is_counted = labels != -100
    features = torch.cat([part for part, _ in parts])
    torch.testing.assert_close(features, model.body(X).tanh()[is_counted])
    assert torch.equal(torch.cat([part for _, part in parts]), labels[is_counted])
    assert (head.weight_name, head.bias_name) == ("score.weight", "score.bias")


def test_labels_of_a_causal_model_belong_to_the_position_before() -> None:
    labels = torch.arange(12).view(4, 3) % 4
    _, answers = labelled_features(PerTokenForCausalLM(), batches(labels))
    assert torch.equal(torch.cat([part for _, part in answers]), labels[:, 1:].flatten())


@pytest.mark.parametrize("labels", [torch.zeros(4).long(), torch.zeros(4, 2).long()])
def test_labels_for_a_forward_of_ones_own_are_not_moved(labels: Tensor) -> None:
    """They were once moved by a position too many, where there were two of three tokens."""
    batch = {"x": X, "input_ids": torch.zeros(4, 3), "labels": labels}

    def forward(model: PerToken, batch: dict[str, Tensor]) -> Tensor:
        logits = model(batch["x"])
        return logits[:, -1] if labels.ndim == 1 else logits[:, :-1]

    _, answers = labelled_features(PerTokenForCausalLM(), [batch], forward=forward)
    assert sum(len(part) for _, part in answers) == labels.numel()


BATCHES = {
    "no label": (X, "needs labels, .* got none"),
    "label under another name": ({"x": X, "label": 1}, r"mapping with \['label', 'x'\]"),
    "an example of a data set": ((X[0], torch.tensor(1)), "single examples; pass DataLoader"),
    "an example with a plain label": ({"x": X[0], "labels": 1}, "single examples"),
    "three parts": ((X, X, X), "3 parts: Tensor, Tensor, Tensor"),
    "labels that are no classes": ((X, torch.zeros(4, 3)), "numbers of classes, got torch.float32"),
    "a label too large": ((X, torch.full((4, 3), 4)), "between 0 and 3, .* got 4 to 4"),
    "a negative label": ((X, torch.full((4, 3), -1)), "got -1 to -1"),
    "inputs with labels among them": (((X, X), torch.zeros(4, 3)), "does not take these inputs"),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batches_that_a_fit_cannot_use_are_refused_in_a_sentence(case: str) -> None:
    batch, sentence = BATCHES[case]
    with pytest.raises(UserError, match=sentence):
        labelled_features(PerToken(), [batch])


def test_a_loader_without_batches_is_refused() -> None:
    with pytest.raises(UserError, match="the loader has none"):
        labelled_features(PerToken(), [])


def test_labels_that_are_a_part_of_the_tokens_will_do() -> None:
    tokens = torch.randint(5, (6, 4), generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 5), nn.Flatten(0, 1))
    _, answers = labelled_features(model, [(tokens[:, :-1], tokens[:, 1:])])
    assert torch.equal(torch.cat([part for _, part in answers]), tokens[:, 1:].flatten())
