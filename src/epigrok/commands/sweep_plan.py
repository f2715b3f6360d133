"""What `epigrok sweep --dry-run` prints: the runs of a sweep, its axes, and the work left."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from epigrok.commands.status_table import last_parts
from epigrok.config import RunConfig, flatten, to_json
from epigrok.errors import UserError
from epigrok.records.status import read_statuses
from epigrok.sweeps.description import Sweep
from epigrok.sweeps.estimate import Estimate, estimate
from epigrok.tables.fields import varying_fields
from epigrok.wording import printable, runs_text

_WIDTH = 100
_LONGEST_LIST = 2
"""Items of a list that a line names."""


def plan(
    sweep: Sweep,
    runs: Mapping[str, RunConfig],
    directory: Path | None,
    steps_per_second: float | None,
) -> list[str]:
    """The lines on a sweep.

    Args:
        sweep: Its description.
        runs: Those of its runs that were chosen, by run id.
        directory: Where they are, or will be.
        steps_per_second: Speed of every run, if known from elsewhere.
    """
    flat = {name: flatten(to_json(config)) for name, config in runs.items()}
    names = last_parts(varying_fields(list(flat.values())))
    state_of_run = _known_states(directory)
    lines = []
    for name, values in flat.items():
        # A preset need not have every field of the others.
        point = [f"{names[n]}={_shortened(values[n])}" for n in names if n in values]
        lines.append(f"{name}  {state_of_run.get(name, 'missing'):<8} {'  '.join(point)}")
    lines += ["", f"sweep {sweep.name}: {runs_text(len(runs))}", *_axes(sweep)]
    present = [state_of_run.get(name, "missing") for name in runs]
    lines.append("; ".join(f"{state} {present.count(state)}" for state in dict.fromkeys(present)))
    lines += _work(estimate(runs, directory, steps_per_second))
    return list(map(printable, lines))


def _axes(sweep: Sweep) -> Iterator[str]:
    """Every list of values and every condition of a sweep, on lines that fit a page."""
    lists = {"methods": sweep.methods, "variants": sweep.variants, **sweep.axes}
    lists |= {"seeds": sweep.seeds, **({"task_seeds": ts} if (ts := sweep.task_seeds) else {})}
    width = max(map(len, lists))
    for axis, choices in lists.items():
        text = f"  {axis:<{width}}  {', '.join(map(_shown, choices))}"
        yield from _wrapped(text, indent=width + 4)
    for condition in sweep.conditions:
        text = f"  {_assignments(condition.set)} where {_assignments(condition.where)}"
        yield from _wrapped(text, indent=4)


def _wrapped(text: str, indent: int) -> list[str]:
    return wrap(text, _WIDTH, subsequent_indent=" " * indent, break_long_words=False)


def _work(cost: Estimate) -> Iterator[str]:
    """What is left to do."""
    yield f"steps left: {cost.num_steps:,}"
    if cost.num_unknown_runs:
        number = runs_text(cost.num_unknown_runs)
        yield f"device-hours: unknown for {number} without a measured speed;"
        yield "  run one of each kind for a minute with the same --out, or give --steps-per-second"
    if cost.hours:
        rest = " for the rest" if cost.num_unknown_runs else ""
        is_short = cost.hours < 1.0
        time = f"minutes: {60 * cost.hours:.2g}" if is_short else f"hours: {cost.hours:,.1f}"
        yield f"device-{time}{rest}"


def _known_states(directory: Path | None) -> dict[str, str]:
    if directory is None or not directory.is_dir():
        return {}
    try:
        statuses = read_statuses(directory)
    except UserError:
        return {}
    return {status.run_id: status.state for status in statuses}


def _assignments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in values.items())


def _shortened(value: Any) -> str:
    """A value, but a long list by its first items."""
    rest = len(value) - _LONGEST_LIST if isinstance(value, list) else 0
    return _shown([*value[:_LONGEST_LIST], f"{rest} more"] if rest > 0 else value)


def _shown(value: Any) -> str:
    """A value as JSON writes it, but numbers in six digits and texts without quotes."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)
