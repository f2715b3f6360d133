"""Watch a model move from memorising to generalising, through its own uncertainty, without labels.

Importing this package imports no torch: every public name is loaded on first use.
"""

from epigrok.lazy_names import loader

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

__all__ = ["__version__", *_HOME_OF_NAME]


__getattr__ = loader(__name__, _HOME_OF_NAME)


def __dir__() -> list[str]:
    return sorted(__all__)
