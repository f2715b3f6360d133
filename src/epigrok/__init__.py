"""Watch a model move from memorising to generalising, through its own uncertainty, without labels.

Importing this package imports no torch: every public name is loaded on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME_OF_NAME = {
    "RunConfig": "epigrok.config",
    "decompose": "epigrok.uncertainty",
    "open_run": "epigrok.experiments",
    "open_sweep": "epigrok.experiments",
    "preset": "epigrok.config",
    "presets": "epigrok.config",
    "train": "epigrok.experiments",
}

__all__ = ["__version__", *_HOME_OF_NAME]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOME_OF_NAME:
        raise AttributeError(f"module 'epigrok' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF_NAME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
