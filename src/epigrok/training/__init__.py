"""Optimisers, the learning-rate schedule, the step loop and checkpoints.

Taking steps belongs here. When a run evaluates, saves and stops is decided in `runs`. IVON carries
a posterior and lives in `posteriors`.
"""

from epigrok.training.loop import StepRecord, TrainState, initial_state, mean_loss, training_steps
from epigrok.training.schedule import learning_rate_scale

__all__ = [
    "StepRecord",
    "TrainState",
    "initial_state",
    "learning_rate_scale",
    "mean_loss",
    "training_steps",
]
