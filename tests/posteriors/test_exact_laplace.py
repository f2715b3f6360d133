"""Last-layer Laplace without the Kronecker approximation."""

import math

import pytest
import torch
from head_problems import curvature_of, head_problem
from torch import Tensor
from torch.nn import functional
from trained_run import Trained

from epigrok.errors import UserError
from epigrok.posteriors import ExactLaplace, Head, LastLayerLaplace
from epigrok.posteriors.exact_laplace import ExactCurvature, exact_curvature
from epigrok.random_streams import normal, stream_key


def exact_of(weight: Tensor, features: Tensor, chunk: int = 9) -> ExactCurvature:
    """The curvature, which does not depend on the answers."""
    answers = torch.zeros(len(features), dtype=torch.int64)
    chunks = zip(features.split(chunk), answers.split(chunk), strict=True)
    return exact_curvature(Head(weight_CD=weight), chunks)


def test_the_exact_curvature_is_the_exact_hessian() -> None:
    features, weight, answers = head_problem()

    def loss(flat: Tensor) -> Tensor:
        return functional.cross_entropy(
            features @ flat.reshape(weight.shape).T, answers, reduction="sum"
        )

    hessian = torch.func.hessian(loss)(weight.flatten())
    torch.testing.assert_close(exact_of(weight, features).matrix, hessian)


def test_the_exact_posterior_samples_its_own_covariance() -> None:
    features, weight, _ = head_problem(width=3, classes=3)
    posterior = ExactLaplace.from_curvature(exact_of(weight, features), 0.5)
    precision = exact_of(weight, features).matrix + 0.5 * torch.eye(9, dtype=torch.float64)
    torch.testing.assert_close(
        posterior.covariance_root @ posterior.covariance_root, torch.linalg.inv(precision)
    )


def test_samples_are_the_covariance_root_times_standard_noise() -> None:
    features, weight, _ = head_problem(width=3, classes=3)
    posterior = ExactLaplace.from_curvature(exact_of(weight, features), 0.5, seed=4)
    noise = normal(stream_key(4, "laplace"), (9,), 2).double()
    expected = weight.flatten() + posterior.covariance_root @ noise
    torch.testing.assert_close(posterior.sample_head(2).flatten(), expected)


def test_it_equals_the_kronecker_posterior_where_that_is_exact() -> None:
    _, weight, answers = head_problem()
    features = normal(stream_key(0, "one"), (1, 6)).double().repeat(40, 1)
    exact = ExactLaplace.from_curvature(exact_of(weight, features), 0.5)
    approximate = LastLayerLaplace.from_curvature(curvature_of(features, weight, answers), 0.5)
    torch.testing.assert_close(exact.sample_head(1), approximate.sample_head(1))


def test_it_takes_the_prior_of_the_kronecker_posterior(trained: Trained) -> None:
    exact, approximate = trained.fitted("laplace-exact:evidence", "laplace:evidence")
    assert isinstance(exact, ExactLaplace)
    assert isinstance(approximate, LastLayerLaplace)
    assert exact.facts == approximate.facts


def test_the_curvature_of_certain_predictions_keeps_its_digits() -> None:
    """p(1 - p) of a class that has all but 1e-18 of the probability is 1e-18, not zero."""
    weight = torch.tensor([[40.0], [0.0], [-1.0]], dtype=torch.float64)
    exact = exact_of(weight, torch.ones(3, 1, dtype=torch.float64)).matrix
    other, third = math.exp(-40.0), math.exp(-41.0)
    diagonal = 3 * torch.tensor([other + third, other, third], dtype=torch.float64)
    torch.testing.assert_close(exact.diagonal(), diagonal, rtol=1e-12, atol=0)


def test_an_exact_fit_to_nothing_or_to_what_is_not_finite_is_refused() -> None:
    _, weight, _ = head_problem()
    with pytest.raises(UserError, match="at least one answer"):
        exact_curvature(Head(weight_CD=weight), [])
    with pytest.raises(ValueError, match="not finite"):
        exact_of(weight, torch.full((2, 6), torch.nan))
    with pytest.raises(UserError, match="100 x 100 = 10000 entries is too large"):
        exact_of(torch.zeros(100, 100), torch.zeros(2, 100))
    with pytest.raises(UserError, match="must be positive, got 0"):
        ExactLaplace.from_curvature(exact_of(weight, torch.ones(2, 6)), 0.0)
