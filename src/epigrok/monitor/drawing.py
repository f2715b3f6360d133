"""The looks of a monitor as a figure; matplotlib is imported when one is drawn."""

from math import isfinite
from typing import Any

from epigrok.extras import extra_named
from epigrok.monitor.history import History
from epigrok.monitor.readings import SetReading
from epigrok.monitor.rule import StateRule
from epigrok.monitor.tolerance import ToleranceRatio

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def draw_history(history: History, rule: StateRule) -> Any:
    """Ratio over steps with two standard errors, the rule's threshold, every change of state."""
    with extra_named():
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.axhline(rule.threshold, color="0.5", linewidth=0.6, linestyle=":")
    for name, colour in zip(history.standings, COLOURS * len(history.standings)):
        looks = [(look.step, look[name]) for look in history.readings]
        looks = [(step, found) for step, found in looks if isfinite(found.tolerance_ratio)]
        steps = [step for step, _ in looks]
        axes.plot(steps, [r.tolerance_ratio for _, r in looks], ".-", color=colour, label=name)
        intervals = [_ratio(found).interval(rule.deviations) for _, found in looks]
        low, high = ([ends[side] for ends in intervals] for side in (0, 1))
        axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
        for event in history.events:
            if event.watched == name:
                axes.axvline(event.step, color=colour, linewidth=0.8, linestyle="--")
                axes.annotate(
                    event.state, (event.step, 1.0), xycoords=("data", "axes fraction"),
                    xytext=(2, -4), textcoords="offset points", rotation=90, va="top",
                    fontsize=7, color=colour,
                )  # fmt: skip
    axes.set(xlabel="training step", ylabel="tolerance ratio, watched over seen")
    axes.set_ylim(0.0, max(1.2, axes.get_ylim()[1]))
    axes.legend(loc="lower right", fontsize=7)
    return figure


def _ratio(reading: SetReading) -> ToleranceRatio:
    return ToleranceRatio(
        value=reading.tolerance_ratio, log_standard_error=reading.tolerance_ratio_log_se
    )
