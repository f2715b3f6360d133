"""The one definition of each metric, and the tables that (posterior, split) make."""

from epigrok.evaluation.context_sweeps import ContextRow, SweepName, context_sweep
from epigrok.evaluation.evaluator import (
    EvaluationRow,
    EvaluationSet,
    evaluate,
    evaluate_oracles,
    evaluation_precision,
    evaluation_sets,
    score_posterior,
    with_oracle,
)
from epigrok.evaluation.grokking_times import GrokkingTimes, grokking_times
from epigrok.evaluation.scores import METRICS, OraclePredictions, Scores, score
from epigrok.evaluation.separation import (
    AccuracyBounds,
    Reading,
    Separation,
    readings,
    separations,
)
from epigrok.evaluation.tracked_posteriors import tracked_posteriors
from epigrok.evaluation.tracking import tracked_rows

__all__ = [
    "METRICS",
    "AccuracyBounds",
    "ContextRow",
    "EvaluationRow",
    "EvaluationSet",
    "GrokkingTimes",
    "OraclePredictions",
    "Reading",
    "Scores",
    "Separation",
    "SweepName",
    "context_sweep",
    "evaluate",
    "evaluate_oracles",
    "evaluation_precision",
    "evaluation_sets",
    "grokking_times",
    "readings",
    "score",
    "score_posterior",
    "separations",
    "tracked_posteriors",
    "tracked_rows",
    "with_oracle",
]
