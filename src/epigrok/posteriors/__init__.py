"""Distributions over the weights of a network; one method per module, one protocol.

Everything here works with any `nn.Module`: fitting, sampling, and `predict`. What is computed from
the samples' predictions lives in `uncertainty`; which posteriors a run tracks, in `evaluation`.
"""

from epigrok.posteriors.calling import (
    Forward,
    counted_positions,
    network_logits,
    split_batch,
    swapped_logits,
)
from epigrok.posteriors.diagonal_laplace import DiagonalLaplace
from epigrok.posteriors.ensemble import Ensemble
from epigrok.posteriors.evaluating import evaluating
from epigrok.posteriors.exact_laplace import ExactLaplace
from epigrok.posteriors.gaussian import DiagonalGaussian
from epigrok.posteriors.head import Head, HeadInputs, HeadPass, head_inputs, head_pass
from epigrok.posteriors.head_curvature import HeadCurvature, head_curvature
from epigrok.posteriors.head_gaussian import HeadSample
from epigrok.posteriors.ivon import IVON, load_optimiser, save_optimiser
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
from epigrok.posteriors.mc_dropout import MCDropout
from epigrok.posteriors.point import Point
from epigrok.posteriors.predicting import Prediction, predict
from epigrok.posteriors.protocol import (
    Facts,
    HeadPosterior,
    NetworkWithHead,
    Posterior,
    PosteriorWithFacts,
    Predictor,
    Sample,
    VariationalOptimiser,
    features_of,
    load_posterior,
    logits_of,
    sampled_logits,
    save_posterior,
)
from epigrok.posteriors.weight_noise import WeightNoise

__all__ = [
    "IVON",
    "DiagonalGaussian",
    "DiagonalLaplace",
    "Ensemble",
    "ExactLaplace",
    "Facts",
    "FitData",
    "FitRequest",
    "Forward",
    "Head",
    "HeadCurvature",
    "HeadInputs",
    "HeadPass",
    "HeadPosterior",
    "HeadSample",
    "LastLayerLaplace",
    "MCDropout",
    "NetworkWithHead",
    "Point",
    "Posterior",
    "PosteriorWithFacts",
    "Prediction",
    "Predictor",
    "ProbitLaplace",
    "Sample",
    "VariationalOptimiser",
    "WeightNoise",
    "counted_positions",
    "evaluating",
    "features_of",
    "fit_posterior",
    "head_curvature",
    "head_inputs",
    "head_pass",
    "kind_of",
    "load_optimiser",
    "load_posterior",
    "logits_of",
    "network_logits",
    "posterior_kinds",
    "predict",
    "register_posterior",
    "require_posteriors",
    "sampled_logits",
    "save_optimiser",
    "save_posterior",
    "split_batch",
    "swapped_logits",
]
