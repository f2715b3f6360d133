"""Has it generalised? Noise tolerance of unlabelled inputs, and the states read from it.

It works with any network and any training loop, without labels of the watched inputs. Callbacks for
frameworks live in `integrations`; the monitor of a run, in `runs`.
"""

from epigrok.monitor.fit import SignsOfFit
from epigrok.monitor.history import History
from epigrok.monitor.measuring import SEEN, HeadDraws, SetMeasure, measure
from epigrok.monitor.monitor import GrokMonitor, MonitorSettings
from epigrok.monitor.noise import head_answers, network_answers, row_tolerances
from epigrok.monitor.quantile import head_tolerance
from epigrok.monitor.readings import Event, MonitorReading, SetReading
from epigrok.monitor.rule import StateRule
from epigrok.monitor.states import Confirm, Reading, Standing, follow
from epigrok.monitor.tolerance import (
    Tolerance,
    ToleranceRatio,
    ToleranceSettings,
    tolerance,
    tolerance_ratio,
)

__all__ = [
    "SEEN",
    "Confirm",
    "Event",
    "GrokMonitor",
    "HeadDraws",
    "History",
    "MonitorReading",
    "MonitorSettings",
    "Reading",
    "SetMeasure",
    "SetReading",
    "SignsOfFit",
    "Standing",
    "StateRule",
    "Tolerance",
    "ToleranceRatio",
    "ToleranceSettings",
    "follow",
    "head_answers",
    "head_tolerance",
    "measure",
    "network_answers",
    "row_tolerances",
    "tolerance",
    "tolerance_ratio",
]
