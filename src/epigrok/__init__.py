"""Watch a model move from memorising to generalising, through its own uncertainty, without labels.

Importing this package imports no torch: every public name is loaded on first use.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.config import RunConfig, preset, presets
    from epigrok.experiments import open_run, open_sweep, train
    from epigrok.uncertainty import decompose

__version__ = "0.1.0"

_HOME_OF_NAME = {
    "RunConfig": "config",
    "decompose": "uncertainty",
    "open_run": "experiments",
    "open_sweep": "experiments",
    "preset": "config",
    "presets": "config",
    "train": "experiments",
}

__all__ = [
    "RunConfig",
    "__version__",
    "decompose",
    "open_run",
    "open_sweep",
    "preset",
    "presets",
    "train",
]


__getattr__ = loader(__name__, _HOME_OF_NAME)


def __dir__() -> list[str]:
    return sorted(__all__)
