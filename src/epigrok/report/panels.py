"""A panel per run and unseen split: curves as inline SVG that shows its numbers under the pointer.

Everything is drawn on one scale from 0 to 1: accuracy, the tolerance ratio, and EU over its peak.
Lengths are units of the SVG's view box.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from epigrok.report.answer import caption, goals_of
from epigrok.report.courses import Course, Look
from epigrok.report.run_events import field_text
from epigrok.tables.fields import field_label
from epigrok.wording import step_text

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 26, 352, 66, 228
"""The rectangle in which curves are drawn."""
_LABEL_WIDTH = 70
NUM_OPEN = 12
"""Panels in sight; further ones are behind a fold."""
_LOOKS_ON_PAGE = 3000
_FEWEST_LOOKS = 16
"""Where there are many panels, each shows some of its looks, so that the page stays small."""

Value = Callable[[Look], float | None]


@dataclass(frozen=True)
class Mark:
    """An event on the axis of steps, with its name above the curves."""

    kind: str
    label: str
    y: float
    """Where its line begins: labels are in two rows, so that none hides another."""
    x: float
    anchor: str
    """Which end of the label is at the mark."""


@dataclass(frozen=True)
class Spot:
    """The place of one look: under the pointer it shows the numbers of the look."""

    left: float
    width: float
    x: float
    heads: str
    numbers: str


@dataclass(frozen=True)
class Panel:
    """What the page shows of one course."""

    title: str
    goal: str
    caption: str
    lines: dict[str, list[str]]
    """Quantity -> its stretches, each a list of points."""
    band: tuple[float, float] | None
    """Left end and width of the time between fitting and generalising."""
    marks: list[Mark]
    spots: list[Spot]
    resting: Spot
    """Shown while the pointer is elsewhere."""
    ticks: list[tuple[str, float]]
    """Numbers at the left, with their heights."""
    last_step: str


def panels(found: Sequence[Course], fields: Sequence[str]) -> list[Panel]:
    """One panel per course; `fields` tell runs apart, the preset first."""
    goals = goals_of(found)
    limit = max(_FEWEST_LOOKS, _LOOKS_ON_PAGE // max(len(found), 1))
    names = _names(found, fields)
    return [
        _panel(course, names[course.run.run_id], goals[course.split.name], limit)
        for course in found
    ]


def _names(found: Sequence[Course], fields: Sequence[str]) -> dict[str, str]:
    """Run id -> what tells it from the others; seeds only where nothing else does."""
    runs = {course.run.run_id: course.run for course in found}
    names = {}
    for run_id, run in runs.items():
        values = [f"{field_label(n)} {field_text(run, n)}" for n in fields if n != "preset"]
        names[run_id] = ", ".join([field_text(run, "preset"), *values])
    shared = list(names.values())
    return {
        run_id: f"{name}, seed {field_text(runs[run_id], 'run_seed')}"
        if shared.count(name) > 1
        else name
        for run_id, name in names.items()
    }


def _panel(course: Course, title: str, goal: str, limit: int) -> Panel:
    last_step = max(course.run.num_steps, course.last.step, 1)
    looks = _thinned(course, limit)
    peak, top = course.peak_epistemic, max([1.0, *(look.ratio or 0.0 for look in looks)])

    def x_of(step: int) -> float:
        return round(LEFT + (RIGHT - LEFT) * step / last_step, 1)

    def y_of(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * value / top, 1)

    def stretches(value: Value) -> list[str]:
        """Points of a line, which breaks off where there is no value."""
        found: list[list[str]] = [[]]
        for look in looks:
            height = value(look)
            if height is None:
                found.append([])
            else:
                found[-1].append(f"{x_of(look.step)},{y_of(height)}")
        return [" ".join(points) for points in found if points]

    lines = {
        "training": stretches(lambda look: look.train_accuracy),
        "uncertainty": stretches(lambda look: _over_peak(look, peak)),
        "accuracy": stretches(lambda look: look.accuracy),
        "ratio": stretches(lambda look: look.ratio),
    }
    steps = {
        ("announced", "announced", TOP - 28): _step(course.announced),
        ("lost", "lost", TOP - 28): _step(course.seen_lost),
        ("reached", "95 % right", TOP - 14): course.generalised_step,
    }
    spots = _spots(looks, peak, x_of)
    resting = course.announced or course.last
    return Panel(
        title=title,
        goal=goal,
        caption=caption(course, goal),
        lines=lines,
        band=_band(course, last_step, x_of),
        marks=_marks({what: x_of(step) for what, step in steps.items() if step is not None}),
        spots=spots,
        resting=spots[next(i for i, look in enumerate(looks) if look.step == resting.step)],
        ticks=[(f"{value:g}", y_of(value)) for value in (0.0, 0.5, 1.0)],
        last_step=step_text(last_step),
    )


def _step(look: Look | None) -> int | None:
    return None if look is None else look.step


def _marks(places: dict[tuple[str, str, float], float]) -> list[Mark]:
    """Marks whose labels lead away from each other, unless there is no room."""
    first = min(places.values(), default=0.0)
    marks = []
    for what, x in places.items():
        has_room_left, has_room_right = x > LEFT + _LABEL_WIDTH, x < RIGHT - _LABEL_WIDTH
        is_left = (has_room_left and x == first) or not has_room_right
        marks.append(Mark(*what, x, "end" if is_left else "start"))
    return marks


def _thinned(course: Course, limit: int) -> list[Look]:
    """At most `limit` looks at even distances, and those at which something happened."""
    looks = course.looks
    stride = -(-len(looks) // limit)
    events = (course.announced, course.seen_lost, course.last, course.best)
    kept = {look.step for look in (*looks[::stride], *events) if look is not None}
    kept |= {course.generalised_step or 0, course.fitted_step or 0}
    return [look for look in looks if look.step in kept]


def _spots(looks: Sequence[Look], peak: float, x_of: Callable[[int], float]) -> list[Spot]:
    places = [x_of(look.step) for look in looks]
    edges = [float(LEFT), *((a + b) / 2 for a, b in pairwise(places)), float(RIGHT)]
    return [
        Spot(
            left=round(left, 1),
            width=round(right - left, 1),
            x=x,
            heads=f"step {step_text(look.step)}{f': {look.state}' if look.state else ''}",
            numbers=_numbers(look, peak),
        )
        for look, x, (left, right) in zip(looks, places, pairwise(edges))
    ]


def _numbers(look: Look, peak: float) -> str:
    words = [f"accuracy {look.accuracy:.3f}"]
    if look.ratio is not None:
        words.append(f"ratio {look.ratio:.2f}")
    if look.epistemic is not None and peak:
        words.append(f"EU {100 * look.epistemic / peak:.0f} % of its peak")
    return " · ".join(words)


def _over_peak(look: Look, peak: float) -> float | None:
    return None if look.epistemic is None or not peak else look.epistemic / peak


def _band(
    course: Course, last_step: int, x_of: Callable[[int], float]
) -> tuple[float, float] | None:
    if course.fitted_step is None:
        return None
    start, end = x_of(course.fitted_step), x_of(course.generalised_step or last_step)
    return (start, round(end - start, 1)) if end > start else None
