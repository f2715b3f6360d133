"""Last-layer Laplace against exact curvature, a public implementation and linear regression."""

import dataclasses
import math
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import epigrok
from epigrok.config import TransformerConfig, preset
from epigrok.errors import UserError
from epigrok.evaluation import (
    EvaluationSet,
    evaluate,
    evaluation_sets,
    score_posterior,
    tracked_posteriors,
)
from epigrok.model import Transformer, build_model
from epigrok.posteriors import (
    ExactLaplace,
    HeadCurvature,
    LastLayerLaplace,
    ProbitLaplace,
    head_curvature,
)
from epigrok.posteriors.exact_laplace import exact_curvature
from epigrok.random_streams import integers, normal, stream_key
from epigrok.tasks import build_family, sample_world
from epigrok.uncertainty import decompose


def problem(num_answers: int = 40, width: int = 6, classes: int = 4) -> tuple[Tensor, ...]:
    features = normal(stream_key(0, "features"), (num_answers, width)).double()
    weight = 0.7 * normal(stream_key(0, "weight"), (classes, width)).double()
    answers = integers(stream_key(0, "answers"), classes, (num_answers,))
    return features, weight, answers


def curvature_of(
    features: Tensor, weight: Tensor, answers: Tensor, chunk: int = 7
) -> HeadCurvature:
    return head_curvature(weight, zip(features.split(chunk), answers.split(chunk)))


def test_the_exact_curvature_is_the_exact_hessian() -> None:
    features, weight, answers = problem()

    def loss(flat: Tensor) -> Tensor:
        return functional.cross_entropy(
            features @ flat.reshape(weight.shape).T, answers, reduction="sum"
        )

    hessian = torch.func.hessian(loss)(weight.flatten())
    torch.testing.assert_close(exact_curvature(weight, features.split(9)), hessian)


def test_kronecker_factors_are_exact_where_all_features_are_equal() -> None:
    _, weight, answers = problem()
    features = normal(stream_key(0, "one"), (1, 6)).double().repeat(40, 1)
    curvature = curvature_of(features, weight, answers)
    product = torch.kron(curvature.class_factor_CC, curvature.feature_factor_DD)
    torch.testing.assert_close(product, exact_curvature(weight, [features]))


def test_factors_do_not_depend_on_how_the_data_is_cut() -> None:
    features, weight, answers = problem()
    whole, cut = (curvature_of(features, weight, answers, chunk) for chunk in (40, 3))
    torch.testing.assert_close(whole.class_factor_CC, cut.class_factor_CC)
    torch.testing.assert_close(whole.feature_factor_DD, cut.feature_factor_DD)
    assert whole.negative_log_likelihood == pytest.approx(cut.negative_log_likelihood)
    assert cut.num_answers == 40


def test_posteriors_of_one_curvature_share_its_eigendecompositions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decomposed = []
    eigh = torch.linalg.eigh

    def counted(matrix: Tensor) -> tuple[Tensor, Tensor]:
        decomposed.append(matrix.shape)
        return eigh(matrix)

    monkeypatch.setattr(torch.linalg, "eigh", counted)
    curvature = curvature_of(*problem())
    for prior_precision in (0.5, 2.0, "evidence"):
        shared = LastLayerLaplace.fit(curvature, prior_precision)
    assert decomposed == [(4, 4), (6, 6)]
    alone = LastLayerLaplace.fit(curvature_of(*problem()), "evidence")
    assert torch.equal(shared.sample_head(0), alone.sample_head(0))
    assert (shared.prior_precision, shared.log_evidence) == (
        alone.prior_precision,
        alone.log_evidence,
    )


def test_samples_have_the_posterior_covariance() -> None:
    features, weight, answers = problem(width=3, classes=3)
    posterior = LastLayerLaplace.fit(curvature_of(features, weight, answers), 0.5)
    draws = torch.stack([posterior.sample_head(i).flatten() for i in range(10_000)])
    curvature = curvature_of(features, weight, answers)
    precision = torch.kron(curvature.class_factor_CC, curvature.feature_factor_DD)
    covariance = torch.linalg.inv(precision + 0.5 * torch.eye(9, dtype=torch.float64))
    scale = covariance.diag().max()
    torch.testing.assert_close(draws.T.cov() / scale, covariance / scale, rtol=0, atol=0.06)
    torch.testing.assert_close(draws.mean(0), weight.flatten(), rtol=0, atol=0.06)


def test_the_exact_posterior_samples_its_own_covariance() -> None:
    features, weight, _ = problem(width=3, classes=3)
    posterior = ExactLaplace.fit(weight, [features], 0.5)
    precision = exact_curvature(weight, [features]) + 0.5 * torch.eye(9, dtype=torch.float64)
    torch.testing.assert_close(
        posterior.covariance_root @ posterior.covariance_root, torch.linalg.inv(precision)
    )


def test_the_variance_of_logits_matches_samples() -> None:
    features, weight, answers = problem()
    posterior = LastLayerLaplace.fit(curvature_of(features, weight, answers), 2.0)
    draws = torch.stack([features[:5] @ posterior.sample_head(i).T for i in range(4_000)])
    variance = posterior.logit_variance(features[:5])
    torch.testing.assert_close(draws.var(0), variance, rtol=0.1, atol=0)


def test_a_linear_gaussian_analogue_is_bayesian_linear_regression() -> None:
    """With unit class curvature per answer, as squared loss has, H = I ⊗ Σ φφᵀ exactly."""
    features, weight, _ = problem()
    curvature = HeadCurvature(
        weight, 40.0 * torch.eye(4, dtype=torch.float64), features.T @ features / 40, 0.0, 40
    )
    posterior = LastLayerLaplace.fit(curvature, 3.0)
    noise = torch.eye(24, dtype=torch.float64).view(24, 4, 6)
    root = torch.stack([posterior.scaled_by_covariance_root(n).flatten() for n in noise])
    one_output = torch.linalg.inv(features.T @ features + 3.0 * torch.eye(6, dtype=torch.float64))
    expected = torch.kron(torch.eye(4, dtype=torch.float64), one_output.contiguous())
    torch.testing.assert_close(root.T @ root, expected)


def test_the_evidence_optimum_beats_a_fine_grid() -> None:
    features, weight, answers = problem(200)
    curvature = curvature_of(features, weight, answers)
    best = LastLayerLaplace.fit(curvature, "evidence")
    grid = [
        LastLayerLaplace.fit(curvature, math.exp(k / 20)).log_evidence for k in range(-200, 200)
    ]
    assert best.log_evidence >= max(grid) - 1e-9


@pytest.mark.parametrize(
    ("scale", "margin", "is_at_bound"), [(1.0, 0.0, False), (0.0, 0.0, True), (1.0, 1e4, True)]
)
def test_an_evidence_optimum_at_the_bound_of_the_search_is_told(
    scale: float, margin: float, is_at_bound: bool
) -> None:
    """A head of zero wants infinite precision, a certain one, whose curvature vanishes, none."""
    features, weight, answers = problem()
    features[:, 0] = 1.0
    weight[0, 0] += margin
    posterior = LastLayerLaplace.fit(curvature_of(features, scale * weight, answers), "evidence")
    assert posterior.facts == {
        "prior_precision": posterior.prior_precision,
        "log_evidence": posterior.log_evidence,
        "num_fit_answers": 40,
        "prior_precision_is_at_bound": is_at_bound,
    }


def test_the_evidence_is_a_gaussian_integral() -> None:
    """∫ exp(-loss at W - ½(w-W)ᵀH(w-W) - ½δ‖w‖² …) around W, done by hand for one class pair."""
    features, weight, answers = problem(width=2, classes=2)
    curvature = curvature_of(features, weight, answers)
    posterior = LastLayerLaplace.fit(curvature, 0.7)
    precision = torch.kron(curvature.class_factor_CC, curvature.feature_factor_DD)
    precision = precision + 0.7 * torch.eye(4, dtype=torch.float64)
    expected = -curvature.negative_log_likelihood - 0.5 * (
        torch.logdet(precision) - 4 * math.log(0.7) + 0.7 * weight.square().sum()
    )
    assert posterior.log_evidence == pytest.approx(expected.item())


def test_it_agrees_with_a_public_implementation() -> None:
    laplace = pytest.importorskip("laplace")
    features, weight, answers = problem(64)
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
    ours = LastLayerLaplace.fit(curvature, 1.3)
    class_factor, feature_factor = theirs.H_facs.kfacs[0]
    torch.testing.assert_close(curvature.class_factor_CC, class_factor, rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(curvature.feature_factor_DD, feature_factor, rtol=1e-5, atol=1e-8)
    precision = theirs.posterior_precision.to_matrix()
    eye = torch.eye(24, dtype=torch.float64)
    product = torch.kron(curvature.class_factor_CC, curvature.feature_factor_DD) + 1.3 * eye
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


def test_the_probit_prediction_damps_each_logit_by_its_own_spread() -> None:
    features, weight, answers = problem(400)
    posterior = LastLayerLaplace.fit(curvature_of(features, weight, answers), 1.0)
    logits = ProbitLaplace(posterior).head_logits(features[None, :50], 0)[0]
    draws = torch.stack([features[:50] @ posterior.sample_head(i).T for i in range(4_000)])
    expected = draws.mean(0) / (1 + torch.pi / 8 * draws.var(0)).sqrt()
    torch.testing.assert_close(logits, expected, rtol=0.1, atol=0.06)
    plain = (features[:50] @ weight.T).softmax(-1)
    assert logits.softmax(-1).amax(-1).mean() < plain.amax(-1).mean()


def test_what_is_not_finite_raises() -> None:
    features, weight, answers = problem()
    features[3, 2] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        curvature_of(features, weight, answers)
    with pytest.raises(UserError, match="-1"):
        LastLayerLaplace.fit(curvature_of(*problem()), -1.0)
    with pytest.raises(UserError, match="at least one"):
        head_curvature(weight, [])
    with pytest.raises(UserError, match="too large"):
        exact_curvature(torch.zeros(100, 100), [])


class Untied(Transformer):
    """The same decoder with a head of its own."""

    def untie(self) -> None:
        self.own_head = nn.Parameter(self.embedding.weight.detach().clone())

    @property
    def head_weight(self) -> Tensor:
        return self.own_head


def test_tied_and_untied_copies_of_one_model_have_the_same_uncertainty() -> None:
    config = preset("icl-tiny")
    tied = build_model(config)
    assert isinstance(config.model, TransformerConfig)
    untied = Untied(config.model, 31, 12, 2)
    untied.load_state_dict(tied.state_dict())
    untied.untie()
    sets = evaluation_sets(config, build_family(config, sample_world(config.task, 0)))
    small = {split: rows.first(60) for split, rows in sets.items()}
    before = {name: tensor.clone() for name, tensor in tied.state_dict().items()}
    results = []
    for model in (tied, untied):
        (posterior,) = tracked_posteriors(config, model, sets["id_train"], names=("laplace",))
        results.append(score_posterior(model, posterior, small, 8)["id_val"].summary())
    assert results[0] == results[1]
    assert results[0]["epistemic"] > 0
    after = tied.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_prior_is_the_decay_of_whoever_trains_the_head() -> None:
    config = preset("icl-tiny")
    optim = dataclasses.replace(config.optim, weight_decay=0.3, adamw_weight_decay=0.7)
    config = dataclasses.replace(config, optim=optim)
    model = build_model(config)
    sets = evaluation_sets(config, build_family(config, sample_world(config.task, 0)))
    (posterior,) = tracked_posteriors(config, model, sets["id_train"], names=("laplace",))
    assert isinstance(posterior, LastLayerLaplace)
    assert posterior.prior_precision == 0.7


def test_tokens_that_ask_nothing_change_nothing() -> None:
    config = preset("icl-tiny")
    model = build_model(config)
    sets = evaluation_sets(config, build_family(config, sample_world(config.task, 0)))
    asked = sets["id_train"].first(64)
    batch = asked.batch
    silent = dataclasses.replace(batch, is_scored_BT=torch.zeros_like(batch.is_scored_BT))
    doubled = EvaluationSet(
        type(batch)(
            torch.cat([batch.tokens_BL, silent.tokens_BL]),
            torch.cat([batch.answers_BT, silent.answers_BT]),
            torch.cat([batch.is_scored_BT, silent.is_scored_BT]),
        ),
        None,
    )
    first, second = (
        tracked_posteriors(config, model, rows, names=("laplace",))[0] for rows in (asked, doubled)
    )
    assert isinstance(first, LastLayerLaplace)
    assert isinstance(second, LastLayerLaplace)
    torch.testing.assert_close(first.precision_CD, second.precision_CD)


def test_fewer_answers_to_fit_to_make_a_wider_posterior() -> None:
    """As docs/uncertainty.md has it."""
    run = epigrok.open_run(Path(epigrok.__file__).parent / "zoo" / "icl-tiny")
    sets = evaluation_sets(run.config, run.family())
    asked = {"id_val": sets["id_val"].first(256)}
    model, found = run.model(2000), []
    for num_rows in (None, 256):
        fit_set = sets["id_train"].first(num_rows)
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
            posterior = LastLayerLaplace.fit(curvature_of(features, weight, answers, 64), prior)
            probs = torch.stack(
                [(features @ posterior.sample_head(i).T).softmax(-1) for i in range(32)]
            )
            epistemic[margin, prior] = decompose(probs).epistemic.mean().item()
    assert epistemic[3.0, 0.1] > 10 * epistemic[0.5, 0.1]
    assert epistemic[3.0, 1000.0] < 0.1 * epistemic[0.5, 1000.0]


def test_the_curvature_of_certain_predictions_keeps_its_digits() -> None:
    """p(1 - p) of a class that has all but 1e-18 of the probability is 1e-18, not zero."""
    features = torch.ones(3, 1, dtype=torch.float64)
    weight = torch.tensor([[40.0], [0.0], [-1.0]], dtype=torch.float64)
    curvature = curvature_of(features, weight, torch.zeros(3, dtype=torch.int64))
    other, third = math.exp(-40.0), math.exp(-41.0)
    diagonal = 3 * torch.tensor([other + third, other, third], dtype=torch.float64)
    torch.testing.assert_close(curvature.class_factor_CC.diagonal(), diagonal, rtol=1e-12, atol=0)
    exact = exact_curvature(weight, [features])
    torch.testing.assert_close(exact.diagonal(), diagonal, rtol=1e-12, atol=0)


def test_an_exact_fit_to_nothing_or_to_what_is_not_finite_is_refused() -> None:
    _, weight, _ = problem()
    with pytest.raises(UserError, match="at least one answer"):
        exact_curvature(weight, [])
    with pytest.raises(ValueError, match="not finite"):
        exact_curvature(weight, [torch.full((2, 6), torch.nan)])
