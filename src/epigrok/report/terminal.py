"""The courses of running runs as a table for a terminal, with a small curve of each."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from epigrok.errors import UserError
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL
from epigrok.records.directory import RunDirectory
from epigrok.records.status import RunStatus
from epigrok.report.answer import goals_of
from epigrok.report.courses import Course, courses_of_run
from epigrok.tables.groups import shown_posteriors
from epigrok.wording import NONE, printable, step_text

CURVE_WIDTH = 20
_BARS = "▁▂▃▄▅▆▇█"
_STYLES = {
    "memorising": "yellow",
    "generalising": "cyan",
    "generalised": "bold green",
    "lost": "bold red",
}
_NEEDED = {
    "metrics": ("step", "split", "posterior", ACCURACY_FINAL, EPISTEMIC_FINAL),
    "tolerance": ("step", "split"),
}


def courses_so_far(statuses: Iterable[RunStatus]) -> list[Course]:
    """The courses of runs that may still be training, from their own files."""
    found = []
    for status in statuses:
        run = RunDirectory(status.path)
        try:
            metrics, tolerance = (run.rows(name, needed) for name, needed in _NEEDED.items())
            posteriors = shown_posteriors(run.description().posteriors)
        except UserError:
            continue  # `epigrok check` says what is wrong with it; this only looks
        found += courses_of_run(status, metrics, tolerance, posteriors)
    return found


def course_table(found: Sequence[Course]) -> Table:
    """Two lines for each course: where it stands, and how it got there."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    # Wide enough for what is to come, so that the table stays where it is.
    widths = {"model": 13, "step, state": 12, "accuracy": 12, "no labels": 10}
    for name, width in {**widths, "accuracy, EU": CURVE_WIDTH}.items():
        table.add_column(name, no_wrap=True, min_width=width)
    goals = goals_of(found)
    for course in found:
        last, run = course.last, course.run
        ratio = NONE if last.ratio is None else f"{last.ratio:.2f}"
        uncertainty = NONE if last.epistemic is None else f"{last.epistemic:.3f}"
        seen = NONE if last.train_accuracy is None else f"{last.train_accuracy:.3f}"
        table.add_row(
            Text(
                f"{printable(str(run.config.get('preset')))}\n{printable(goals[course.split.name])}"
            ),
            Text.assemble(
                f"{step_text(run.step)}/{step_text(run.num_steps)}\n",
                (last.state or NONE, _STYLES.get(last.state or "", "")),
            ),
            f"seen   {seen}\nunseen {last.accuracy:.3f}",
            f"ratio {ratio}\nEU   {uncertainty}",
            Text.assemble(
                (sparkline([look.accuracy for look in course.looks], top=1.0), "blue"),
                "\n",
                (sparkline([look.epistemic for look in course.looks]), "magenta"),
            ),
        )
    return table


def sparkline(values: Sequence[float | None], top: float | None = None) -> str:
    """A line of bars from zero to `top` or else to the largest value; at most `CURVE_WIDTH`."""
    width = min(len(values), CURVE_WIDTH)
    # The first and the newest value are always there.
    places = (round(k * (len(values) - 1) / max(width - 1, 1)) for k in range(width))
    shown = [values[place] or 0.0 for place in places]
    highest = top or max(shown, default=0.0) or 1.0
    steps = (min(value / highest, 1.0) * (len(_BARS) - 1) for value in shown)
    return "".join(_BARS[round(step)] for step in steps)
