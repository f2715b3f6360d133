"""The one definition of each metric, and the tables that (posterior, split) make."""

from epigrok.evaluation.evaluator import (
    EvaluationRow,
    EvaluationSet,
    evaluate,
    evaluate_oracles,
    evaluation_sets,
    score_posterior,
    with_oracle,
)
from epigrok.evaluation.scores import METRICS, OraclePredictions, Scores, score
from epigrok.evaluation.tracked_posteriors import tracked_posteriors

__all__ = [
    "METRICS",
    "EvaluationRow",
    "EvaluationSet",
    "OraclePredictions",
    "Scores",
    "evaluate",
    "evaluate_oracles",
    "evaluation_sets",
    "score",
    "score_posterior",
    "tracked_posteriors",
    "with_oracle",
]
