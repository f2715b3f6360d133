"""Kronecker factors of a softmax head's curvature."""

import math

import pytest
import torch
from head_problems import curvature_of, head_problem, kronecker_product

from epigrok.errors import UserError
from epigrok.posteriors import head_curvature
from epigrok.posteriors.exact_laplace import exact_curvature
from epigrok.random_streams import normal, stream_key


def test_kronecker_factors_are_exact_where_all_features_are_equal() -> None:
    _, weight, answers = head_problem()
    features = normal(stream_key(0, "one"), (1, 6)).double().repeat(40, 1)
    curvature = curvature_of(features, weight, answers)
    product = kronecker_product(curvature)
    torch.testing.assert_close(product, exact_curvature(weight, [features]))


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
        head_curvature(weight, [])
    features[3, 2] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        curvature_of(features, weight, answers)
