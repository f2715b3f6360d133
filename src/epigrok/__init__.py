"""Watch a model move from memorising to generalising, through its own uncertainty, without labels.

Importing this package imports no torch: every public name is loaded on first use.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.config import RunConfig, preset, presets, register_preset
    from epigrok.figures.catalogue import draw_figure, register_figure
    from epigrok.model import register_model
    from epigrok.monitor import GrokMonitor, MonitorSettings
    from epigrok.posteriors import predict, register_posterior
    from epigrok.registry import load_plugin
    from epigrok.runs import open_run, train
    from epigrok.tables import open_sweep
    from epigrok.tasks import register_task
    from epigrok.uncertainty import decompose

__version__ = "0.1.0"

_HOME_OF_NAME = {
    "GrokMonitor": "monitor",
    "MonitorSettings": "monitor",
    "RunConfig": "config",
    "decompose": "uncertainty",
    "draw_figure": "figures.catalogue",
    "load_plugin": "registry",
    "open_run": "runs",
    "open_sweep": "tables",
    "predict": "posteriors",
    "preset": "config",
    "presets": "config",
    "register_figure": "figures.catalogue",
    "register_model": "model",
    "register_posterior": "posteriors",
    "register_preset": "config",
    "register_task": "tasks",
    "train": "runs",
}

__all__ = [
    "GrokMonitor",
    "MonitorSettings",
    "RunConfig",
    "__version__",
    "decompose",
    "draw_figure",
    "load_plugin",
    "open_run",
    "open_sweep",
    "predict",
    "preset",
    "presets",
    "register_figure",
    "register_model",
    "register_posterior",
    "register_preset",
    "register_task",
    "train",
]


__getattr__ = loader(__name__, _HOME_OF_NAME)


def __dir__() -> list[str]:
    return sorted(__all__)
