"""The posteriors that a configuration names, at the present state of training."""

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from epigrok.config import IVONConfig, PosteriorName, RunConfig, parse_posterior
from epigrok.errors import UserError
from epigrok.evaluation.evaluator import EvaluationSet
from epigrok.model import Network
from epigrok.posteriors import (
    DiagonalGaussian,
    ExactLaplace,
    HeadCurvature,
    LastLayerLaplace,
    Point,
    Posterior,
    ProbitLaplace,
    WeightNoise,
    features_of,
    head_curvature,
)
from epigrok.training.optimiser import effective_sample_size

POSTERIOR_SEED = 0
"""Posterior noise is the same in every run and at every checkpoint: comparisons are paired."""


def tracked_posteriors(
    config: RunConfig,
    model: Network,
    fit_set: EvaluationSet,
    ivon_posterior: DiagonalGaussian | None = None,
    names: tuple[str, ...] | None = None,
) -> list[Posterior]:
    """Fit what `config` tracks, or the posteriors called `names`.

    Args:
        config: The run.
        model: Its network.
        fit_set: Clean training rows, for posteriors that need to see data.
        ivon_posterior: What IVON learnt, where the run was trained with it.
        names: Overrides the configuration's list.
    """
    parsed = [parse_posterior(name) for name in names or config.evaluation.posteriors]
    curvature = None
    if any(name.is_laplace for name in parsed):
        curvature = head_curvature(model.head_weight, _answer_features(model, fit_set))
    return [
        _ivon(name, config, model, ivon_posterior)
        if name.needs_ivon
        else _build(name, config, model, fit_set, curvature)
        for name in parsed
    ]


def _build(
    name: PosteriorName,
    config: RunConfig,
    model: Network,
    fit_set: EvaluationSet,
    curvature: HeadCurvature | None,
) -> Posterior:
    if name.kind == "point":
        return Point.of(model)
    if name.kind == "weight-noise":
        assert isinstance(name.value, float)
        return replace(WeightNoise.relative(model, name.value, POSTERIOR_SEED), name=name.text)
    assert curvature is not None
    prior = config.optim.head_weight_decay if name.value is None else name.value
    laplace = LastLayerLaplace.fit(curvature, prior, name.text, POSTERIOR_SEED)
    if name.kind == "laplace-probit":
        return ProbitLaplace(laplace, name.text)
    if name.kind == "laplace-exact":
        features = (pair[0] for pair in _answer_features(model, fit_set))
        exact = ExactLaplace.fit(
            model.head_weight, features, laplace.prior_precision, name.text, POSTERIOR_SEED
        )
        return replace(exact, facts=laplace.facts)
    return laplace


def _ivon(
    name: PosteriorName,
    config: RunConfig,
    model: Network,
    ivon_posterior: DiagonalGaussian | None,
) -> Posterior:
    optim = config.optim
    if not isinstance(optim, IVONConfig):
        raise UserError(f"posterior {name.text!r} exists only for runs trained with IVON")
    if name.kind == "ivon-isotropic":
        ess = effective_sample_size(optim, config.task)
        sigma = 1.0 / sqrt(ess * (optim.hess_init + optim.weight_decay))
        return WeightNoise.isotropic(model, sigma, POSTERIOR_SEED, name.text)
    if ivon_posterior is None:
        raise UserError("IVON's posterior is not kept with this checkpoint, only its mean")
    return replace(ivon_posterior, name=name.text, seed=POSTERIOR_SEED)


def _answer_features(
    model: Network, rows: EvaluationSet
) -> Iterator[tuple[Float[Tensor, "N D"], Int[Tensor, " N"]]]:
    """Features and answers where the rows ask something, a bounded number at a time."""
    with torch.no_grad():
        for chunk in rows.chunks():
            features_BTD = features_of(model, chunk.batch.tokens_BL)
            is_scored = chunk.batch.is_scored_BT
            yield features_BTD[is_scored], chunk.batch.answers_BT[is_scored]
