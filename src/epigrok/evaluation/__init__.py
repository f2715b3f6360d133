"""What is measured: every metric, every table, and the evaluation of posteriors on splits.

Events, fates and comparisons of runs are defined here too, on rows of tables. Reading the tables of
many runs lives in `tables`, drawing them in `figures`. Names that need torch are loaded on first
use.
"""

from typing import TYPE_CHECKING

from epigrok.evaluation.fates import AccuracyBounds
from epigrok.evaluation.grokking_times import GrokkingTimes, grokking_times
from epigrok.evaluation.separation import (
    FinalUncertainty,
    Separation,
    final_uncertainties,
    separations,
)
from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.evaluation.context_series import ContextRow, series_rows
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
    from epigrok.evaluation.posterior_tracking import fitted_posteriors, tracked_posteriors
    from epigrok.evaluation.scores import OraclePredictions, Scores, score
    from epigrok.evaluation.tracking import Evaluation, tracked_evaluation

__all__ = [
    "AccuracyBounds",
    "ContextRow",
    "Evaluation",
    "EvaluationRow",
    "EvaluationSet",
    "FinalUncertainty",
    "GrokkingTimes",
    "OraclePredictions",
    "Scores",
    "Separation",
    "evaluate",
    "evaluate_oracles",
    "evaluation_precision",
    "evaluation_sets",
    "final_uncertainties",
    "fitted_posteriors",
    "grokking_times",
    "score",
    "score_posterior",
    "separations",
    "series_rows",
    "tracked_evaluation",
    "tracked_posteriors",
    "with_oracle",
]

_HOME_OF_NAME = {
    "ContextRow": "context_series",
    "Evaluation": "tracking",
    "EvaluationRow": "evaluator",
    "EvaluationSet": "evaluator",
    "OraclePredictions": "scores",
    "Scores": "scores",
    "series_rows": "context_series",
    "evaluate": "evaluator",
    "evaluate_oracles": "evaluator",
    "evaluation_precision": "evaluator",
    "evaluation_sets": "evaluator",
    "score": "scores",
    "score_posterior": "evaluator",
    "fitted_posteriors": "posterior_tracking",
    "tracked_posteriors": "posterior_tracking",
    "tracked_evaluation": "tracking",
    "with_oracle": "evaluator",
}

__getattr__ = loader(__name__, _HOME_OF_NAME)
