"""The one definition of each metric, and the tables that (posterior, split) make.

Names that need torch are loaded on first use, so that reading off grokking times needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from epigrok.evaluation.grokking_times import GrokkingTimes, grokking_times
from epigrok.evaluation.separation import (
    AccuracyBounds,
    Reading,
    Separation,
    readings,
    separations,
)

if TYPE_CHECKING:
    from epigrok.evaluation.context_sweeps import ContextRow, context_sweep
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
    from epigrok.evaluation.posterior_tracking import tracked_posteriors
    from epigrok.evaluation.scores import METRICS, OraclePredictions, Scores, score
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

_HOME_OF_NAME = {
    "METRICS": "scores",
    "ContextRow": "context_sweeps",
    "EvaluationRow": "evaluator",
    "EvaluationSet": "evaluator",
    "OraclePredictions": "scores",
    "Scores": "scores",
    "context_sweep": "context_sweeps",
    "evaluate": "evaluator",
    "evaluate_oracles": "evaluator",
    "evaluation_precision": "evaluator",
    "evaluation_sets": "evaluator",
    "score": "scores",
    "score_posterior": "evaluator",
    "tracked_posteriors": "posterior_tracking",
    "tracked_rows": "tracking",
    "with_oracle": "evaluator",
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOME_OF_NAME:
        raise AttributeError(f"module 'epigrok.evaluation' has no attribute {name!r}")
    return getattr(import_module(f"epigrok.evaluation.{_HOME_OF_NAME[name]}"), name)
