"""Last-layer Laplace against exact curvature, a public implementation and linear regression."""

import math
import warnings
from pathlib import Path

import pytest
import torch
from head_problems import curvature_of, head_problem, kronecker_product
from small_tasks import family_of, one_parameter_run
from torch import Tensor, nn

import epigrok
from epigrok.config import TransformerConfig
from epigrok.errors import UserError
from epigrok.evaluation import evaluate, evaluation_sets, score_posterior, tracked_posteriors
from epigrok.model import Transformer, build_model
from epigrok.posteriors import Head, HeadCurvature, LastLayerLaplace, ProbitLaplace
from epigrok.random_streams import integers, normal, stream_key
from epigrok.uncertainty import decompose

laplace_of = LastLayerLaplace.from_curvature


def covariance_root_of(posterior: LastLayerLaplace) -> Tensor:
    """The root of the covariance over all entries, rows of the head one after another."""
    shape = posterior.weight_CD.shape
    each_entry = torch.eye(posterior.weight_CD.numel(), dtype=torch.float64).view(-1, *shape)
    return torch.stack([posterior.scaled_by_covariance_root(e).flatten() for e in each_entry])


def covariance_of(posterior: LastLayerLaplace) -> Tensor:
    root = covariance_root_of(posterior)
    return root.T @ root


def test_samples_have_the_posterior_covariance() -> None:
    curvature = curvature_of(*head_problem(width=3, classes=3))
    posterior = laplace_of(curvature, 0.5)
    precision = kronecker_product(curvature, 0.5)
    torch.testing.assert_close(covariance_of(posterior), torch.linalg.inv(precision))
    draws = torch.stack([posterior.sample_head(index) for index in range(500)])
    shifts = (draws - posterior.weight_CD).flatten(start_dim=1)
    noise = torch.linalg.solve(covariance_root_of(posterior), shifts.T)
    # Standard normal: four standard errors of 500 x 9 numbers, and of 500 for each entry.
    assert noise.mean().abs() < 4 / math.sqrt(4500)
    assert (noise.var() - 1).abs() < 4 * math.sqrt(2 / 4500)
    assert (noise.cov() - torch.eye(9)).abs().max() < 5 / math.sqrt(500)


def test_posteriors_of_one_curvature_share_its_eigenvectors() -> None:
    curvature = curvature_of(*head_problem())
    posteriors = [laplace_of(curvature, prior) for prior in (0.5, 2.0, "evidence")]
    for posterior in posteriors:
        assert posterior.class_basis_CC is curvature.class_eigen[1]
        assert posterior.feature_basis_DD is curvature.feature_eigen[1]
    alone = laplace_of(curvature_of(*head_problem()), "evidence")
    assert torch.equal(posteriors[-1].sample_head(0), alone.sample_head(0))
    assert posteriors[-1].facts == alone.facts


def test_the_variance_of_a_logit_is_that_of_the_head_along_its_features() -> None:
    features, weight, answers = head_problem()
    posterior = laplace_of(curvature_of(features, weight, answers), 2.0)
    covariance = covariance_of(posterior).view(4, 6, 4, 6)
    expected = torch.einsum("nd,cdce,ne->nc", features, covariance, features)
    torch.testing.assert_close(posterior.logit_variance(features), expected)


def test_the_probit_prediction_damps_each_logit_by_its_own_spread() -> None:
    features, weight, answers = head_problem()
    posterior = laplace_of(curvature_of(features, weight, answers), 1.0)
    logits = ProbitLaplace(posterior).head_logits(features[None], 0)[0]
    damping = (1 + torch.pi / 8 * posterior.logit_variance(features)).sqrt()
    torch.testing.assert_close(logits * damping, features @ weight.T)
    assert damping.min() > 1.0
    assert ProbitLaplace(posterior).facts == posterior.facts


@pytest.mark.parametrize("prior_precision", [-1.0, 0.0, float("nan")])
def test_a_prior_precision_that_is_not_positive_is_refused(prior_precision: float) -> None:
    with pytest.raises(UserError, match=f"must be positive, got {prior_precision}"):
        laplace_of(curvature_of(*head_problem()), prior_precision)


def test_a_linear_gaussian_analogue_is_bayesian_linear_regression() -> None:
    """With unit class curvature per answer, as squared loss has, H = I ⊗ Σ φφᵀ exactly."""
    features, weight, _ = head_problem()
    curvature = HeadCurvature(
        Head(weight_CD=weight),
        40.0 * torch.eye(4, dtype=torch.float64),
        features.T @ features / 40,
        0.0,
        40,
    )
    posterior = laplace_of(curvature, 3.0)
    one_output = torch.linalg.inv(features.T @ features + 3.0 * torch.eye(6, dtype=torch.float64))
    expected = torch.kron(torch.eye(4, dtype=torch.float64), one_output.contiguous())
    torch.testing.assert_close(covariance_of(posterior), expected)


def test_the_evidence_optimum_beats_a_fine_grid() -> None:
    features, weight, answers = head_problem(200)
    curvature = curvature_of(features, weight, answers)
    best = laplace_of(curvature, "evidence")
    grid = [laplace_of(curvature, math.exp(k / 20)).log_evidence for k in range(-200, 200)]
    assert best.log_evidence >= max(grid) - 1e-9


@pytest.mark.parametrize(
    ("scale", "margin", "is_at_bound"), [(1.0, 0.0, False), (0.0, 0.0, True), (1.0, 1e4, True)]
)
def test_an_evidence_optimum_at_the_bound_of_the_search_is_told(
    scale: float, margin: float, is_at_bound: bool
) -> None:
    """A head of zero wants infinite precision, a certain one, whose curvature vanishes, none."""
    features, weight, answers = head_problem()
    features[:, 0] = 1.0
    weight[0, 0] += margin
    posterior = laplace_of(curvature_of(features, scale * weight, answers), "evidence")
    assert posterior.facts == {
        "prior_precision": posterior.prior_precision,
        "log_evidence": posterior.log_evidence,
        "num_fit_answers": 40,
        "prior_precision_is_at_bound": is_at_bound,
    }


def test_the_evidence_is_a_gaussian_integral() -> None:
    """∫ exp(-loss at W - ½(w-W)ᵀH(w-W) - ½δ‖w‖² …) around W, done by hand for one class pair."""
    features, weight, answers = head_problem(width=2, classes=2)
    curvature = curvature_of(features, weight, answers)
    posterior = laplace_of(curvature, 0.7)
    precision = kronecker_product(curvature, 0.7)
    expected = -curvature.negative_log_likelihood - 0.5 * (
        torch.logdet(precision) - 4 * math.log(0.7) + 0.7 * weight.square().sum()
    )
    assert posterior.log_evidence == pytest.approx(expected.item())


def test_it_agrees_with_a_public_implementation() -> None:
    laplace = pytest.importorskip("laplace")
    features, weight, answers = head_problem(64)
    head = nn.Linear(6, 4, bias=False).double()
    head.weight.data = weight.clone()
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(features, answers), batch_size=16
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = laplace.Laplace(
            head,
            "classification",
            subset_of_weights="all",
            hessian_structure="kron",
            prior_precision=1.3,
        )
        theirs.fit(data)
    curvature = curvature_of(features, weight, answers)
    ours = laplace_of(curvature, 1.3)
    class_factor, feature_factor = theirs.H_facs.kfacs[0]
    torch.testing.assert_close(curvature.class_factor_CC, class_factor, rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(curvature.feature_factor_DD, feature_factor, rtol=1e-5, atol=1e-8)
    precision = theirs.posterior_precision.to_matrix()
    product = kronecker_product(curvature, 1.3)
    torch.testing.assert_close(product, precision, rtol=1e-5, atol=1e-8)
    noise = normal(stream_key(3, "noise"), (24,)).double()
    sample = theirs.posterior_precision.bmm(noise.view(1, 24), exponent=-0.5).view(4, 6)
    torch.testing.assert_close(
        ours.scaled_by_covariance_root(noise.view(4, 6)), sample, rtol=1e-5, atol=1e-8
    )
    assert ours.log_evidence == pytest.approx(theirs.log_marginal_likelihood().item(), rel=1e-5)
    probit = theirs(features[:9], pred_type="glm", link_approx="probit")
    logits = ProbitLaplace(ours).head_logits(features[None, :9], 0)[0]
    torch.testing.assert_close(logits.softmax(-1), probit, rtol=1e-5, atol=1e-8)


class Untied(Transformer):
    """The same decoder with a head of its own."""

    def untie(self) -> None:
        self.own_head = nn.Parameter(self.embedding.weight.detach().clone())

    @property
    def head_weight(self) -> Tensor:
        return self.own_head


def test_tied_and_untied_copies_of_one_model_have_the_same_uncertainty() -> None:
    config = one_parameter_run()
    tied = build_model(config)
    assert isinstance(config.model, TransformerConfig)
    untied = Untied(config.model, 7, 8, 2)
    untied.load_state_dict(tied.state_dict())
    untied.untie()
    sets = evaluation_sets(config, family_of(config))
    before = {name: tensor.clone() for name, tensor in tied.state_dict().items()}
    results = []
    for model in (tied, untied):
        (posterior,) = tracked_posteriors(config, model, sets["id_train"], names=("laplace",))
        results.append(score_posterior(model, posterior, sets, 8)["id_val"].summary())
    assert results[0] == results[1]
    assert results[0]["epistemic"] > 0
    after = tied.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_fewer_answers_to_fit_to_make_a_wider_posterior() -> None:
    """As docs/uncertainty.md has it."""
    run = epigrok.open_run(Path(epigrok.__file__).parent / "zoo" / "icl-tiny")
    sets = evaluation_sets(run.config, run.family())
    asked = {"id_val": sets["id_val"].first(256)}
    model, found = run.model(2000), []
    for num_sequences in (None, 256):
        fit_set = sets["id_train"].first(num_sequences)
        posteriors = tracked_posteriors(run.config, model, fit_set, names=("laplace:100",))
        (row,) = evaluate(model, posteriors, asked, num_samples=16)
        found.append((row.facts["num_fit_answers"], row.summary["epistemic_final"]))
    assert found == [(12_324, pytest.approx(0.0012, 0.1)), (6 * 256, pytest.approx(0.0071, 0.1))]


def test_uncertainty_of_a_saturated_head_grows_with_a_weak_prior() -> None:
    """The curvature of a certain classifier vanishes and the posterior falls back to its prior."""
    answers = integers(stream_key(5, "answers"), 6, (1024,))
    noise = 0.3 * normal(stream_key(5, "noise"), (1024, 6)).double()
    features = 4.0 * torch.eye(6, dtype=torch.float64)[answers] + noise
    epistemic = {}
    for margin in (0.5, 3.0):
        weight = margin * torch.eye(6, dtype=torch.float64)
        for prior in (0.1, 1000.0):
            posterior = laplace_of(curvature_of(features, weight, answers, 64), prior)
            probs = torch.stack(
                [(features @ posterior.sample_head(i).T).softmax(-1) for i in range(32)]
            )
            epistemic[margin, prior] = decompose(probs).epistemic.mean().item()
    assert epistemic[3.0, 0.1] > 10 * epistemic[0.5, 0.1]
    assert epistemic[3.0, 1000.0] < 0.1 * epistemic[0.5, 1000.0]
