"""Distributions over the weights of a network; one method per module, one protocol."""

from epigrok.posteriors.ensemble import Ensemble
from epigrok.posteriors.exact_laplace import ExactLaplace
from epigrok.posteriors.gaussian import DiagonalGaussian
from epigrok.posteriors.ivon import IVON
from epigrok.posteriors.last_layer_laplace import (
    HeadCurvature,
    LastLayerLaplace,
    ProbitLaplace,
    head_curvature,
)
from epigrok.posteriors.point import Point
from epigrok.posteriors.protocol import (
    Facts,
    FittedPosterior,
    HeadPosterior,
    Posterior,
    Sample,
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
    "FittedPosterior",
    "HeadCurvature",
    "HeadPosterior",
    "LastLayerLaplace",
    "Point",
    "Posterior",
    "ProbitLaplace",
    "Sample",
    "WeightNoise",
    "features_of",
    "head_curvature",
    "logits_of",
    "sampled_logits",
]
