"""From predictions to numbers: entropy decomposition, calibration, the exact Bayesian predictors.

Functions of tensors alone: where the predictions come from does not matter here. `posteriors` makes
them, `evaluation` turns them into the metrics of tables.
"""

from epigrok.uncertainty.bayes_oracle import (
    BayesOracle,
    relative_position,
    symmetric_divergence,
)
from epigrok.uncertainty.calibration import NUM_BINS, calibration_error, reliability_counts
from epigrok.uncertainty.decomposition import (
    EntropyDecomposition,
    EntropyStream,
    decompose,
    few_samples_correction,
    log_probabilities,
)
from epigrok.uncertainty.sampling_error import ErrorStream, StandardErrors

__all__ = [
    "NUM_BINS",
    "BayesOracle",
    "EntropyDecomposition",
    "EntropyStream",
    "ErrorStream",
    "StandardErrors",
    "calibration_error",
    "decompose",
    "few_samples_correction",
    "log_probabilities",
    "relative_position",
    "reliability_counts",
    "symmetric_divergence",
]
