"""Entropy decomposition, calibration and the exact Bayesian predictors of a task."""

from epigrok.uncertainty.calibration import NUM_BINS, calibration_error, reliability_counts
from epigrok.uncertainty.decomposition import (
    EntropyDecomposition,
    EntropyStream,
    decompose,
    log_probabilities,
)

__all__ = [
    "NUM_BINS",
    "EntropyDecomposition",
    "EntropyStream",
    "calibration_error",
    "decompose",
    "log_probabilities",
    "reliability_counts",
]
