"""Has it generalised? Noise tolerance of unlabelled inputs, and the states read from it."""

from epigrok.monitor.head import Head, HeadInputs, head_inputs
from epigrok.monitor.noise import head_answers, network_answers, row_tolerances
from epigrok.monitor.states import Reading, Standing, StateRule, follow
from epigrok.monitor.tolerance import (
    Tolerance,
    ToleranceRatio,
    ToleranceSettings,
    tolerance,
    tolerance_ratio,
)

__all__ = [
    "Head",
    "HeadInputs",
    "Reading",
    "Standing",
    "StateRule",
    "Tolerance",
    "ToleranceRatio",
    "ToleranceSettings",
    "follow",
    "head_answers",
    "head_inputs",
    "network_answers",
    "row_tolerances",
    "tolerance",
    "tolerance_ratio",
]
