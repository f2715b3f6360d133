"""Runs and what they leave behind: the run directory, training, resuming, reading."""

from epigrok.experiments.run import Run, open_run
from epigrok.experiments.train import DivergedError, TrainOptions, train

__all__ = ["DivergedError", "Run", "TrainOptions", "open_run", "train"]
