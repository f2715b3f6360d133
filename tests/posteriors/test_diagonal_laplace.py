"""Last-layer Laplace with independent weights, beside the exact one."""

import math

import pytest
import torch
from head_problems import head_problem
from torch import Tensor
from torch.nn import functional

from epigrok.errors import UserError
from epigrok.posteriors import DiagonalLaplace, ExactLaplace, Head, diagonal_laplace
from epigrok.posteriors.diagonal_laplace import diagonal_curvature
from epigrok.posteriors.exact_laplace import exact_curvature
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import decompose


def problem() -> tuple[Head, list[tuple[Tensor, Tensor]]]:
    features, weight, answers = head_problem()
    bias = normal(stream_key(0, "bias"), (4,)).double()
    head = Head(weight_CD=weight, bias_C=bias, weight_name="w", bias_name="b")
    return head, list(zip(features.split(7), answers.split(7), strict=True))


def test_it_is_the_diagonal_of_the_exact_curvature() -> None:
    head, answers = problem()
    found, loss, number = diagonal_curvature(head, answers)
    exact = exact_curvature(head, answers)
    torch.testing.assert_close(found.flatten(), exact.matrix.diagonal())
    assert (loss, number) == (pytest.approx(exact.negative_log_likelihood), 40)


def test_the_curvature_of_certain_predictions_keeps_its_digits() -> None:
    """p(1 - p) of a class that has all but 1e-18 of the probability is 1e-18, not zero."""
    head = Head(weight_CD=torch.tensor([[40.0], [0.0], [-1.0]]))
    found, loss, _ = diagonal_curvature(head, [(torch.ones(1, 1), torch.tensor([0]))])
    other, third = math.exp(-40.0), math.exp(-41.0)
    expected = torch.tensor([[other + third], [other], [third]])
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0.0)
    assert loss == pytest.approx(other + third)


def test_single_precision_loses_nothing_that_matters() -> None:
    head, answers = problem()
    single = Head(weight_CD=head.weight_CD.float(), bias_C=head.bias_C.float())
    found, *_ = diagonal_curvature(single, ((f.float(), a) for f, a in answers))
    expected, *_ = diagonal_curvature(head, answers)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("block", [3, 14, 1 << 22])
def test_neither_curvature_nor_samples_depend_on_the_size_of_blocks(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, answers = problem()
    whole = DiagonalLaplace.from_answers(head, answers, 1.0)
    monkeypatch.setattr(diagonal_laplace, "LOGITS_PER_BLOCK", block)
    monkeypatch.setattr(diagonal_laplace, "elements_per_block", lambda device: block)
    found = DiagonalLaplace.from_answers(head, answers, 1.0)
    torch.testing.assert_close(found.precision_CD, whole.precision_CD)
    torch.testing.assert_close(whole.sample_head(2), found.sample_head(2))
    features = answers[0][0]
    expected = head.extended(features) @ whole.sample_head(2).T
    torch.testing.assert_close(found.head_logits(features, 2), expected)


def test_samples_have_the_inverse_of_the_precision_as_variance() -> None:
    posterior = DiagonalLaplace.from_answers(*problem(), prior=0.5)
    draws = torch.stack([posterior.sample_head(index) for index in range(400)])
    whitened = (draws - posterior.head.matrix) * posterior.precision_CD.sqrt()
    assert (whitened.std(dim=0) - 1).abs().max() < 4 / math.sqrt(2 * 400)
    assert whitened.mean(dim=0).abs().max() < 4 / math.sqrt(400)


def test_the_evidence_optimum_beats_a_grid() -> None:
    head, answers = problem()
    best = DiagonalLaplace.from_answers(head, answers, "evidence")
    grid = [DiagonalLaplace.from_answers(head, answers, math.exp(k / 4)) for k in range(-30, 30)]
    assert best.log_evidence >= max(posterior.log_evidence for posterior in grid) - 1e-9


def trained_head(classes: int, width: int, number: int) -> tuple[Head, Tensor, Tensor]:
    """A head at its most likely value, on features that tell most answers; classes like words."""
    prior = 1.0 / torch.arange(1, classes + 1)
    generator = torch.Generator().manual_seed(0)
    answers = torch.multinomial(prior, number, replacement=True, generator=generator)
    centres = 0.5 * normal(stream_key(1, "centres"), (classes, width)).double()
    features = centres[answers] + normal(stream_key(1, "noise"), (number, width)).double()
    weight = torch.zeros(classes, width, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight], max_iter=100)

    def loss() -> Tensor:
        optimiser.zero_grad()
        fit = functional.cross_entropy(features @ weight.T, answers, reduction="sum")
        total = fit + 0.5 * weight.square().sum()
        total.backward()
        return total

    optimiser.step(loss)
    return Head(weight_CD=weight.detach()), features, answers


def test_its_uncertainty_lies_near_the_exact_one() -> None:
    """What docs/your-own-model.md says of leaving out all correlations."""
    head, features, answers = trained_head(50, 16, 1500)
    diagonal = DiagonalLaplace.from_answers(head, [(features, answers)], 1.0)
    exact = ExactLaplace.from_curvature(exact_curvature(head, [(features, answers)]), 1.0)
    epistemic = []
    for posterior in (diagonal, exact):
        logits = [posterior.head_logits(features[:200], index) for index in range(32)]
        epistemic.append(decompose(torch.stack(logits).softmax(-1)).epistemic)
    ratio = (epistemic[0].mean() / epistemic[1].mean()).item()
    assert 0.75 < ratio < 1.25
    assert torch.corrcoef(torch.stack(epistemic))[0, 1] > 0.9


def test_a_fit_to_nothing_or_to_what_is_not_finite_is_refused() -> None:
    head, answers = problem()
    with pytest.raises(UserError, match="at least one answer"):
        DiagonalLaplace.from_answers(head, [], 1.0)
    with pytest.raises(UserError, match="must be positive, got -1"):
        DiagonalLaplace.from_answers(head, answers, -1.0)
    with pytest.raises(ValueError, match="not finite"):
        DiagonalLaplace.from_answers(head, [(torch.nan * f, a) for f, a in answers], 1.0)
