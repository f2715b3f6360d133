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
from rich.text import Text

from epigrok.commands.arguments import parse
from epigrok.commands.status_table import Fields, status_table
from epigrok.config.checks import require_positive
from epigrok.records.status import RunStatus, counts, read_statuses
from epigrok.records.zoo import unpack_if_zoo
from epigrok.wording import printable, runs_text

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
    is_plain = not console.is_terminal
    console.print(status_view(statuses, None, is_plain, console.width))
    return all(status.state == "done" for status in statuses)


def _watch(directory: Path, every: float, console: Console) -> None:
    with Live(console=console, auto_refresh=False) as live:
        while True:
            statuses = read_statuses(directory)
            max_rows = max(3, console.size.height - 8)
            view = status_view(statuses, max_rows, False, console.width)
            live.update(view, refresh=True)
            if all(status.state == "done" for status in statuses):
                return
            time.sleep(every)


def status_view(
    statuses: list[RunStatus], max_rows: int | None, is_plain: bool, width: int = _PLAIN_WIDTH
) -> Group:
    """Counts, one line per run and the reasons for failures; at most `max_rows` runs."""
    fields = Fields.of(statuses)
    summary = "  ".join(f"{state} {number}" for state, number in counts(statuses).items())
    preset = f"  (preset {fields.presets[0]})" if len(fields.presets) == 1 else ""
    parts: list[Any] = [_text(f"{runs_text(len(statuses))}: {summary}{preset}")]
    # If not all runs fit, show those that may need attention.
    ordered = sorted(statuses, key=fields.order)
    shown = ordered if max_rows is None else ordered[:max_rows]
    table, left_out = status_table(shown, fields, width, is_plain)
    parts.append(table)
    if len(shown) < len(ordered):
        parts.append(Text(f"… and {len(ordered) - len(shown)} more"))
    if left_out:
        parts.append(Text(f"no room for: {', '.join(left_out)}"))
    for status in shown:
        if status.reason:
            log = f"; see {status.path / 'log.txt'}" if (status.path / "log.txt").exists() else ""
            parts.append(_text(f"{status.run_id} {status.state}: {status.reason}{log}"))
    return Group(*parts)


def _text(content: str) -> Text:
    """Text from files, without control characters or markup."""
    return Text(printable(content))
