"""Distributions over the weights of a network; one method per module, one protocol."""

from epigrok.posteriors.ensemble import Ensemble
from epigrok.posteriors.exact_laplace import ExactLaplace
from epigrok.posteriors.gaussian import DiagonalGaussian
from epigrok.posteriors.head_curvature import HeadCurvature, head_curvature
from epigrok.posteriors.ivon import IVON
from epigrok.posteriors.kinds import (
    FitData,
    FitRequest,
    fit_posterior,
    kind_of,
    posterior_kinds,
    register_posterior,
    require_posteriors,
)
from epigrok.posteriors.last_layer_laplace import LastLayerLaplace, ProbitLaplace
from epigrok.posteriors.point import Point
from epigrok.posteriors.protocol import (
    Facts,
    FittedPosterior,
    HeadPosterior,
    Posterior,
    Sample,
    VariationalOptimiser,
    features_of,
    logits_of,
    sampled_logits,
)
from epigrok.posteriors.weight_noise import WeightNoise

__all__ = [
    "IVON",
    "DiagonalGaussian",
    "Ensemble",
    "ExactLaplace",
    "Facts",
    "FitData",
    "FitRequest",
    "FittedPosterior",
    "HeadCurvature",
    "HeadPosterior",
    "LastLayerLaplace",
    "Point",
    "Posterior",
    "ProbitLaplace",
    "Sample",
    "VariationalOptimiser",
    "WeightNoise",
    "features_of",
    "fit_posterior",
    "head_curvature",
    "kind_of",
    "logits_of",
    "posterior_kinds",
    "register_posterior",
    "require_posteriors",
    "sampled_logits",
]
