"""The figure of a monitor: lines, bands and announcements."""

from epigrok.monitor import SEEN, Event, MonitorReading, SetReading, StateRule
from epigrok.monitor.drawing import draw_history
from epigrok.monitor.history import History


def test_each_watched_set_has_a_line_a_band_and_its_announcements() -> None:
    history = History(("held out", "new tasks"), StateRule())
    for step, ratio in enumerate((0.1, float("nan"), 0.9)):
        found = SetReading(tolerance_ratio=ratio, tolerance_ratio_log_se=0.1)
        sets = {SEEN: SetReading(), "held out": found, "new tasks": found}
        history.readings.append(MonitorReading(step=step, sets=sets))
    history.events.append(Event("held out", "generalised", 2))
    (axes,) = draw_history(history, StateRule()).axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    # What cannot be read has no point.
    assert list(lines["held out"].get_xdata()) == [0, 2]
    assert len(axes.collections) == 2
    assert [text.get_text() for text in axes.texts] == ["generalised"]
