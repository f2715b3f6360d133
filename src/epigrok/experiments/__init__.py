"""Runs and sweeps and what they leave behind: training, engines, status, the query.

Names are loaded on first use, so that looking at results imports no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOME_OF_NAME:
        raise AttributeError(f"module 'epigrok.experiments' has no attribute {name!r}")
    return getattr(import_module(f"epigrok.experiments.{_HOME_OF_NAME[name]}"), name)
