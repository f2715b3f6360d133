"""`epigrok compare DIR [DIR]`: how runs ended, setting by setting, and whether two differ."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from epigrok.commands.arguments import parse
from epigrok.config.splits import ID_VAL
from epigrok.errors import UserError
from epigrok.evaluation import AccuracyBounds
from epigrok.evaluation.fates import ENDS, end_of_run
from epigrok.evaluation.proportions import Interval, difference, share
from epigrok.evaluation.schema import TOTAL_FINAL
from epigrok.records.directory import run_directories
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tables import open_sweep
from epigrok.tables.choosing import chosen_runs
from epigrok.tables.events import rows_by_run
from epigrok.tables.groups import settings

FEWEST_RUNS = 8
"""With fewer seeds of a setting, chance decides what a comparison seems to show."""
_WIDTH = 200


@dataclass(frozen=True, kw_only=True)
class CompareArguments:
    """Count how the finished runs of each setting ended; compare two settings.

    A setting is a preset with its fields; its runs differ only in seeds. Shares have Wilson's 95 %
    interval, the difference of two shares Newcombe's. Nothing is concluded from fewer than 8 runs
    of a setting. A run counts as lost if it was at 0.5 or more once and ended below half its best.
    """

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """One or two directories of sweeps or runs."""
    split: str = ID_VAL.name
    """Held-out split to judge by."""
    where: tuple[str, ...] = ()
    """Only runs whose fields have these values, as in optim.weight_decay=1e-4,2e-4."""
    bounds: Annotated[AccuracyBounds, tyro.conf.arg(name="")] = field(
        default_factory=AccuracyBounds
    )


@dataclass(frozen=True)
class _Ended:
    """How the runs of one setting ended."""

    name: str
    run_ids: frozenset[str]
    ends: Counter[str]

    @property
    def number(self) -> int:
        return self.ends.total()

    @property
    def generalised(self) -> Interval:
        return share(self.ends["generalised"], self.number)


def main(arguments: Sequence[str]) -> int:
    """Print the counts, and the difference if there are two settings."""
    parsed = parse(CompareArguments, "compare", arguments)
    if not 1 <= len(parsed.directories) <= 2:
        raise UserError(f"one or two directories are needed, got {len(parsed.directories)}")
    found = []
    for path in parsed.directories:
        ended = _settings(path, parsed)
        if not ended:
            raise UserError(
                f"in {path}, no finished run tracked 'point' and has the split {parsed.split!r}; "
                "choose another --split, or other runs with --where"
            )
        found += ended
    console = Console(width=_WIDTH, no_color=True, markup=False, highlight=False)
    console.print(_table(found, parsed.split))
    for path in parsed.directories:
        if note := _note_of_unfinished(path, parsed.where):
            print(note)
    if len(found) == 2:
        print(verdict(*found))
    elif len(found) > 2:
        print(f"{len(found)} settings; to compare two of them, choose them with --where")
    return 0


def _settings(directory: Path, parsed: CompareArguments) -> list[_Ended]:
    store = open_sweep(directory, done_only=True, where=parsed.where)
    prefix = f"{directory.name}: " if len(parsed.directories) > 1 else ""
    found = []
    for setting in settings(store) if store.runs else []:
        ends = {
            run_id: end
            for run_id, rows in rows_by_run(setting.store, (TOTAL_FINAL,))
            if (end := end_of_run(rows, parsed.split, parsed.bounds))
        }
        if ends:
            found.append(_Ended(prefix + setting.name, frozenset(ends), Counter(ends.values())))
    return found


def _note_of_unfinished(directory: Path, where: Sequence[str]) -> str:
    """Runs that do not count; those that failed may be the ones that would have ended badly."""
    chosen = chosen_runs(run_directories(unpack_if_zoo(directory).resolve()), where)
    unfinished = [run for run in chosen if not run.is_done]
    num_failed = sum(run.status().get("state") == "failed" for run in unfinished)
    if not unfinished:
        return ""
    return (
        f"{directory.name}: {len(unfinished)} of {len(chosen)} runs are not finished, of which "
        f"{num_failed} failed; they do not count, so the shares are those of the others"
    )


def verdict(one: _Ended, other: _Ended) -> str:
    """The difference of two settings in a sentence; none is concluded from few runs."""
    shared = one.run_ids & other.run_ids
    if shared:
        raise UserError(f"both settings hold run {min(shared)}; there is nothing to compare")
    found = difference(one.generalised, other.generalised)
    text = f"share generalised, {one.name} less {other.name}: {found}"
    if min(one.number, other.number) < FEWEST_RUNS:
        return (
            f"{text}. No conclusion: that takes at least {FEWEST_RUNS} finished runs of each, and "
            f"there are {one.number} and {other.number}."
        )
    if found.lower <= 0.0 <= found.upper:
        return f"{text}. The two may be equal: the interval holds 0."
    more, less = (one, other) if found.estimate > 0 else (other, one)
    return f"{text}. {more.name} generalises more often than {less.name}."


def _table(found: Sequence[_Ended], split: str) -> Table:
    table = Table(box=MARKDOWN)
    table.add_column(f"on {split}")
    table.add_column("ended")
    for head in ("runs", "share (95 %)"):
        table.add_column(head, justify="right", no_wrap=True)
    for ended in found:
        name = ended.name
        for end in ENDS:
            number = ended.ends[end]
            table.add_row(
                name, end, f"{number} of {ended.number}", str(share(number, ended.number))
            )
            name = ""
    return table
