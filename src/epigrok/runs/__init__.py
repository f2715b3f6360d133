"""What happens in a run directory: training, resuming, evaluating, and opening it afterwards.

Here belongs what needs torch and one run. Reading its files needs neither and lives in `records`;
grids of runs live in `sweeps`. Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.runs.run import Run, open_run
    from epigrok.runs.training import DivergedError, TrainOptions, train

__all__ = ["DivergedError", "Run", "TrainOptions", "open_run", "train"]

_HOME_OF_NAME = {
    "DivergedError": "training",
    "Run": "run",
    "TrainOptions": "training",
    "open_run": "run",
    "train": "training",
}

__getattr__ = loader(__name__, _HOME_OF_NAME)
