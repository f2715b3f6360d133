"""The one definition of each metric, and the tables that (posterior, split) make."""

from epigrok.evaluation.scores import METRICS, Scores, score
from epigrok.evaluation.tracking import (
    EvaluationRow,
    evaluate,
    evaluation_sets,
    score_posterior,
)

__all__ = [
    "METRICS",
    "EvaluationRow",
    "Scores",
    "evaluate",
    "evaluation_sets",
    "score",
    "score_posterior",
]
