"""Runs and sweeps and what they leave behind: training, engines, status, the query.

Names are loaded on first use, so that looking at results imports no torch.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.experiments.run import Run, open_run
    from epigrok.experiments.store import SweepStore, open_sweep
    from epigrok.experiments.training import DivergedError, TrainOptions, train

__all__ = [
    "DivergedError",
    "Run",
    "SweepStore",
    "TrainOptions",
    "open_run",
    "open_sweep",
    "train",
]

_HOME_OF_NAME = {
    "DivergedError": "training",
    "Run": "run",
    "SweepStore": "store",
    "TrainOptions": "training",
    "open_run": "run",
    "open_sweep": "store",
    "train": "training",
}

__getattr__ = loader(__name__, _HOME_OF_NAME)
