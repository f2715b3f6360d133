"""Has it generalised? Noise tolerance of unlabelled inputs, and the states read from it.

It works with any network and any training loop, without labels of the watched inputs. Callbacks for
frameworks live in `integrations`; the monitor of a run, in `runs`.
"""

from epigrok.monitor.measuring import SEEN
from epigrok.monitor.monitor import GrokMonitor
from epigrok.monitor.noise import head_answers, network_answers
from epigrok.monitor.readings import Event, MonitorReading, SetReading
from epigrok.monitor.rule import StateRule
from epigrok.monitor.settings import MonitorSettings
from epigrok.monitor.tolerance import (
    Tolerance,
    ToleranceRatio,
    ToleranceSettings,
    tolerance,
    tolerance_ratio,
)

__all__ = [
    "SEEN",
    "Event",
    "GrokMonitor",
    "MonitorReading",
    "MonitorSettings",
    "SetReading",
    "StateRule",
    "Tolerance",
    "ToleranceRatio",
    "ToleranceSettings",
    "head_answers",
    "network_answers",
    "tolerance",
    "tolerance_ratio",
]
