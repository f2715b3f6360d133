"""`epigrok status DIR`: how far a sweep or a run has got."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from epigrok.commands.arguments import parse
from epigrok.config.checks import require_positive
from epigrok.config.splits import in_order, of_hardest
from epigrok.records.status import (
    STATES,
    RunStatus,
    counts,
    read_statuses,
)
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tables.fields import varying_fields
from epigrok.wording import duration_text, printable, runs_text

_STYLES = {"running": "cyan", "failed": "bold red", "lost": "bold yellow", "done": "green"}
_SHORT = {
    "task.num_base_tasks": "n_task",
    "task.train_fraction": "fraction",
    "run_seed": "seed",
    "num_steps": "steps",
}
_PLAIN_WIDTH = 240


@dataclass(frozen=True, kw_only=True)
class StatusArguments:
    """Show how far the runs of a sweep have got; it only reads the files in their directories."""

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""
    watch: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Keep watching until every run is done; Ctrl-C stops watching and disturbs no run."""
    every: float = 2.0
    """Seconds between looks."""

    def __post_init__(self) -> None:
        require_positive(every=self.every)


def main(arguments: Sequence[str]) -> int:
    """Print the table, once or repeatedly."""
    parsed = parse(StatusArguments, "status", arguments)
    directory = unpack_if_zoo(parsed.directory)
    is_terminal = sys.stdout.isatty()
    console = Console() if is_terminal else Console(width=_PLAIN_WIDTH, no_color=True)
    try:
        if parsed.watch and is_terminal:
            _watch(directory, parsed.every, console)
        else:
            while not _print_once(directory, console) and parsed.watch:
                time.sleep(parsed.every)
    except KeyboardInterrupt:
        return 0
    return 0


def _print_once(directory: Path, console: Console) -> bool:
    """Print the table, and return whether every run is done."""
    statuses = read_statuses(directory)
    console.print(status_view(statuses, None, is_plain=not console.is_terminal))
    return all(status.state == "done" for status in statuses)


def _watch(directory: Path, every: float, console: Console) -> None:
    with Live(console=console, auto_refresh=False) as live:
        while True:
            statuses = read_statuses(directory)
            view = status_view(statuses, max(3, console.size.height - 8), is_plain=False)
            live.update(view, refresh=True)
            if all(status.state == "done" for status in statuses):
                return
            time.sleep(every)


def status_view(statuses: list[RunStatus], max_rows: int | None, is_plain: bool) -> Group:
    """Counts, one line per run and the reasons for failures; at most `max_rows` runs."""
    summary = "  ".join(f"{state} {number}" for state, number in counts(statuses).items())
    parts: list[Any] = [Text(f"{runs_text(len(statuses))}: {summary}")]
    # If not all runs fit, show those that may need attention.
    ordered = sorted(statuses, key=lambda status: STATES.index(status.state))
    shown = ordered if max_rows is None else ordered[:max_rows]
    parts.append(_table(shown, varying_fields([status.config for status in statuses]), is_plain))
    if len(shown) < len(ordered):
        parts.append(Text(f"… and {len(ordered) - len(shown)} more"))
    for status in shown:
        if status.reason:
            log = f"; see {status.path / 'log.txt'}" if (status.path / "log.txt").exists() else ""
            parts.append(_text(f"{status.run_id} {status.state}: {status.reason}{log}"))
    return Group(*parts)


def _table(statuses: list[RunStatus], varying: list[str], is_plain: bool) -> Table:
    table = Table(box=None if is_plain else Table().box, pad_edge=not is_plain)
    unseen = {split.name for s in statuses for split in s.splits if split.shows_generalisation}
    splits = in_order(name for s in statuses for name in s.accuracy if name in unseen)
    has_epistemic = any(status.epistemic for status in statuses)
    # A list, such as the posteriors, would leave no room for other columns.
    lists = {name for s in statuses for name, v in s.config.items() if isinstance(v, list)}
    fields = [name for name in varying if name != "preset" and name not in lists]
    table.add_column("run", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("preset", no_wrap=True)
    for name in fields:
        table.add_column(_SHORT.get(name, name))
    numbers = ["step", *(f"acc {name}" for name in splits)]
    numbers += ["EU", "steps/s", "left", "age"] if has_epistemic else ["steps/s", "left", "age"]
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for status in statuses:
        hardest = of_hardest(status.epistemic, status.splits)
        epistemic = [_number(hardest)] if has_epistemic else []
        table.add_row(
            _text(status.run_id),
            Text(status.state, style=_STYLES.get(status.state, "")),
            _text(str(status.config.get("preset", "?"))),
            *(_text(str(status.config.get(name, "-"))) for name in fields),
            f"{status.step}/{status.num_steps}",
            *(_number(status.accuracy.get(name)) for name in splits),
            *epistemic,
            _number(status.steps_per_second, ".1f"),
            _duration(status.seconds_left),
            _duration(status.age_seconds),
        )
    return table


def _text(content: str) -> Text:
    """Text from files, without control characters or markup."""
    return Text(printable(content))


def _number(value: float | None, how: str = ".3f") -> str:
    return "-" if value is None else format(value, how)


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds)
