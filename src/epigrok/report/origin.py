"""The origin of the numbers: configuration, provenance, and commands that repeat the runs."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from epigrok.errors import UserError
from epigrok.records.description import DESCRIPTION
from epigrok.records.directory import CONFIG, RunDirectory
from epigrok.records.status import RunStatus
from epigrok.report.run_events import ordered
from epigrok.report.tables import Column, Table
from epigrok.sweeps.description import Sweep, recorded_sweeps, sweep_to_json
from epigrok.sweeps.shipped import SWEEPS
from epigrok.tables.store import SweepStore
from epigrok.wording import NONE, runs_text

_VARIES = "varies"


def varying_table(statuses: Sequence[RunStatus], fields: Sequence[str]) -> Table:
    """Every field in which runs differ, with its values."""
    readable = [status for status in statuses if status.config]
    rows = []
    for name in fields:
        values = dict.fromkeys(_shown(s.config.get(name)) for s in ordered(readable, [name]))
        rows.append([name, ", ".join(values)])
    return Table([Column("field"), Column("values", "prose")], rows)


def common_table(statuses: Sequence[RunStatus]) -> Table:
    """Every field that has one value in all runs."""
    found = _values_by_preset(statuses)
    rows = [[name, cells[0]] for name, cells in found.items() if _is_one(cells)]
    return Table([Column("field"), Column("value", "prose")], rows)


def preset_table(statuses: Sequence[RunStatus]) -> Table:
    """Every field in which presets differ, unless it varies within all of them."""
    found = _values_by_preset(statuses)
    presets = found.pop("preset", [])
    rows = [
        [name, *cells]
        for name, cells in found.items()
        if not _is_one(cells) and set(cells) != {_VARIES}
    ]
    return Table([Column("field"), *(Column(name, "prose") for name in presets)], rows)


def _values_by_preset(statuses: Sequence[RunStatus]) -> dict[str, list[str]]:
    """Field -> its value in each preset."""
    presets: dict[str, list[dict[str, Any]]] = {}
    for status in statuses:
        if status.config:
            presets.setdefault(str(status.config.get("preset")), []).append(status.config)
    names = dict.fromkeys(name for group in presets.values() for c in group for name in c)
    cells: dict[str, list[str]] = {}
    for name in names:
        found = [{_shown(config.get(name)) for config in group} for group in presets.values()]
        cells[name] = [values.pop() if len(values) == 1 else _VARIES for values in found]
    return cells


def _is_one(cells: Sequence[str]) -> bool:
    return len(set(cells)) == 1 and cells[0] != _VARIES


def _shown(value: Any) -> str:
    if value is None:
        return NONE
    return value if isinstance(value, str) else json.dumps(value)


def provenance_table(store: SweepStore, runs: Sequence[RunDirectory]) -> Table:
    """Commits, versions, devices, dates and times; where runs differ, with the number of runs."""
    records = [run.provenance() for run in runs]
    newest = [record["processes"][-1] if record else {} for record in records]
    facts = {
        "epigrok": [record.get("epigrok") for record in records],
        "commit": [_commit(record) for record in records],
        "Python": [process.get("python") for process in newest],
        "packages": [_packages(process) for process in newest],
        "platform": [process.get("platform") for process in newest],
        "device": [process.get("device") for process in newest],
    }
    rows = [[name, _counted(values)] for name, values in facts.items()]
    started = [
        datetime.fromisoformat(begun)
        for record in records
        if record and (begun := record["processes"][0].get("started"))
    ]
    ended = [
        datetime.fromtimestamp(time, UTC) for run in runs if (time := run.status().get("updated"))
    ]
    rows.append(["started", min(map(_minute, started), default="not recorded")])
    rows.append(["last update", max(map(_minute, ended), default="not recorded")])
    rows += [[f"time {what}", text] for what, text in _seconds(store).items()]
    return Table([Column("what"), Column("value", "prose")], rows)


def reproduction(store: SweepStore) -> tuple[list[str], dict[str, str]]:
    """Commands that repeat the runs, and the files that they need: name -> content."""
    directory = shlex.quote(store.path.name)
    epigrok = " ".join(["epigrok", *(f"--plugin {shlex.quote(f)}" for f in _plugins(store))])
    sweeps = recorded_sweeps(store.path)
    if not sweeps:
        run = directory if (store.path / CONFIG).exists() else f"{directory}/RUN"
        copy = f"cp {run}/{DESCRIPTION} {run}/{CONFIG} again/"
        return ["mkdir again", copy, f"{epigrok} run again", f"{epigrok} report again"], {}
    commands, files = [], {}
    for number, sweep in enumerate(sweeps, start=1):
        source = sweep.name
        if not _is_shipped(sweep):
            source = f"sweep-{number}.json"
            files[source] = json.dumps(sweep_to_json(sweep), indent=2) + "\n"
        commands.append(f"{epigrok} sweep {shlex.quote(source)} --out {directory}")
    return [*commands, f"{epigrok} report {directory}"], files


def _plugins(store: SweepStore) -> list[str]:
    """The plugin files that runs were trained with, by name."""
    found: dict[str, None] = {}
    for run in store.runs.values():
        try:
            needed = run.description().plugins
        except UserError:
            continue  # the table of runs says that it cannot be read
        found |= dict.fromkeys(plugin.file for plugin in needed if plugin.file.endswith(".py"))
    return list(found)


def _is_shipped(sweep: Sweep) -> bool:
    shipped = SWEEPS.get(sweep.name)
    return shipped is not None and sweep_to_json(shipped()) == sweep_to_json(sweep)


def _commit(record: dict[str, Any]) -> str | None:
    commit = record.get("commit")
    if not commit:
        return None
    return f"{commit} with uncommitted changes" if record.get("has_uncommitted_changes") else commit


def _packages(process: dict[str, Any]) -> str | None:
    return ", ".join(f"{name} {found}" for name, found in process.get("versions", {}).items())


def _counted(values: Iterable[str | None]) -> str:
    """The value that all runs share, or every value with its number of runs."""
    found = Counter(value or "not recorded" for value in values)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{value} ({runs_text(count)})" for value, count in found.most_common())


def _seconds(store: SweepStore) -> dict[str, str]:
    parts = {"training": "seconds_training", "evaluating": "seconds_evaluating"}
    if not set(parts.values()) <= set(store.columns("timings")):
        return {}
    sums = ", ".join(f"sum({column})" for column in parts.values())
    (row,) = store.sql(f"select {sums} from timings").fetchall()
    return {what: f"{seconds:,.0f} s" for what, seconds in zip(parts, row) if seconds is not None}


def _minute(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
