"""One self-contained HTML page, and the files it links to."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from epigrok.evaluation.grokking_times import COLLAPSE_SHARE
from epigrok.figures.catalogue import draw_all
from epigrok.figures.drawn_figure import DrawnFigure
from epigrok.figures.output import csv_text, write_drawn
from epigrok.files import make_writable_directory, own_path, write_file
from epigrok.records.directory import run_directories
from epigrok.records.status import counts, read_statuses
from epigrok.report import panels as drawing
from epigrok.report.answer import MONITOR_RULE, QUESTION, RULE, headline, monitor_said
from epigrok.report.courses import courses
from epigrok.report.origin import (
    common_table,
    preset_table,
    provenance_table,
    reproduction,
    varying_table,
)
from epigrok.report.run_events import ordered, run_events, setting_fields
from epigrok.report.tables import (
    course_columns,
    grokking_columns,
    grokking_table,
    outcome_table,
    posterior_table,
    run_columns,
    run_table,
)
from epigrok.sweeps.description import recorded_sweeps
from epigrok.tables.fields import varying_fields
from epigrok.tables.store import SweepStore, open_sweep
from epigrok.wording import listed, printable

PAGE = "index.html"
_FIGURES = "figures"
_PIXELS_PER_INCH = 150
"""At this scale a figure of text width fills the page, and text is equally large in all."""


@dataclass(frozen=True)
class ShownFigure:
    """A figure as the page needs it."""

    name: str
    title: str
    caption: str
    source: str
    """The image itself, as a data URI."""
    width: int
    height: int


def write_report(
    directory: Path,
    out: Path | None = None,
    seeds_apart: bool = False,
    where: Sequence[str] = (),
) -> Path:
    """Write the report on a sweep's directory, or on one run's.

    Args:
        directory: Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package.
        out: Folder for the page and its files; by default `report` in the directory.
        seeds_apart: Show every run separately in figures, instead of medians over seeds.
        where: Only runs that meet these conditions, such as `task.train_fraction=0.8`.

    Returns:
        The page.
    """
    store = open_sweep(directory, seeds_apart=seeds_apart, verified=True, where=where)
    if out is None:
        out = own_path(store.path, "report")
        own_path(out, _FIGURES)
    make_writable_directory(out)
    drawn, not_drawn = draw_all(store)
    figures = [_written(figure, out / _FIGURES) for figure in drawn]
    content = _content(store, out)
    page = _template().render(figures=figures, not_drawn=not_drawn, **content)
    write_file(out / PAGE, page)
    return out / PAGE


def _content(store: SweepStore, out: Path) -> dict[str, Any]:
    """What the template needs besides figures; also writes the tables as CSV."""
    statuses = [
        replace(status, state="unreadable", reason=store.left_out[status.run_id])
        if status.run_id in store.left_out
        else status
        for status in read_statuses(store.path)
        if status.run_id in {*store.runs, *store.left_out}
    ]
    varying = varying_fields([status.config for status in statuses])
    fields = setting_fields(statuses)
    statuses = ordered(statuses, [*fields, *varying])
    found, seen = run_events(store, statuses), courses(store, statuses)
    tables = {
        "runs": run_columns(statuses),
        "grokking-times": grokking_columns(found, fields),
        "looks": course_columns(seen),
    }
    for name, table in tables.items():
        # A label may hold half a surrogate pair, which UTF-8 cannot encode.
        write_file(out / f"{name}.csv", csv_text(table).encode(errors="replace"))
    said = monitor_said(seen)
    commands, needed_files = reproduction(store)
    for name, text in needed_files.items():
        write_file(out / name, text)
    names = [sweep.name for sweep in recorded_sweeps(store.path)] or [store.path.name]
    known = {*store.runs, *store.left_out}
    runs = [run for run in run_directories(store.path) if run.path.name in known]
    return {
        "title": f"{listed(names)}{f', {store.chosen_by}' if store.chosen_by else ''}",
        "question": QUESTION,
        "rules": f"{RULE} {MONITOR_RULE}" if said else RULE,
        "headline": headline(seen, statuses),
        "monitor": said,
        "states": counts(statuses),
        "panels": drawing.panels(seen, fields),
        "posteriors": ", ".join(dict.fromkeys(c.posterior for c in seen if c.posterior)),
        "outcomes": outcome_table(seen, fields),
        "collapses": posterior_table(found),
        "collapse_share": f"{100 * COLLAPSE_SHARE:g}",
        "runs_need_attention": any(status.reason for status in statuses),
        "grokking": grokking_table(found, fields),
        "runs": run_table(statuses),
        "varying": varying_table(statuses, varying),
        "by_preset": preset_table(statuses),
        "common": common_table(statuses),
        "provenance": provenance_table(store, runs),
        "commands": commands,
        "needed_files": list(needed_files),
    }


def _written(drawn: DrawnFigure, directory: Path) -> ShownFigure:
    paths = write_drawn(drawn, directory)
    image_of_suffix = {path.suffix: path.read_bytes() for path in paths}
    width, height = drawn.figure.get_size_inches() * _PIXELS_PER_INCH
    # As an image, a drawing cannot run scripts and its element names cannot clash with others'.
    # With very many curves, pixels are smaller.
    kinds = {"svg+xml": image_of_suffix[".svg"], "png": image_of_suffix[".png"]}
    kind, image = min(kinds.items(), key=lambda item: len(item[1]))
    return ShownFigure(
        name=drawn.name,
        title=drawn.title,
        caption=drawn.caption,
        source=f"data:image/{kind};base64,{base64.b64encode(image).decode()}",
        width=round(width),
        height=round(height),
    )


def _template() -> Any:
    folder = files("epigrok.report")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.globals |= {"style": Markup((folder / "page.css").read_text()), "svg": drawing}
    return environment.from_string((folder / "page.html.j2").read_text())


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else printable(str(value))
