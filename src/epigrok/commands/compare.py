"""`epigrok compare DIR [DIR]`: how runs ended, setting by setting, and whether two differ."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from epigrok.records.directory import RunDirectory, run_directories
from epigrok.records.status import read_status
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.choosing import chosen_runs
from epigrok.tables.events import rows_by_run
from epigrok.tables.groups import settings
from epigrok.wording import printable

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
    runs: Mapping[str, str]
    """Configuration of each run, which is what it is -> its directory's name."""
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
    labels = _labels(parsed.directories)
    notes = []
    for path, label in zip(parsed.directories, labels):
        store = open_sweep(path, done_only=True, where=parsed.where)
        ended = _settings(store, f"{label}: " if len(labels) > 1 else "", parsed)
        if not ended:
            raise UserError(
                f"in {path}, no finished run tracked 'point' and has the split {parsed.split!r}; "
                "choose another --split, or other runs with --where"
            )
        found += ended
        num_counted = sum(one.number for one in ended)
        notes += [f"{label}: {note}" for note in _uncounted(path, parsed.where, num_counted)]
    console = Console(width=_WIDTH, no_color=True, markup=False, highlight=False)
    console.print(_table(found, parsed.split))
    for note in notes:
        print(printable(note))
    if len(found) == 2:
        print(verdict(*found))
    elif len(found) > 2:
        print(f"{len(found)} settings; to compare two of them, choose them with --where")
    return 0


def _labels(directories: Sequence[Path]) -> list[str]:
    """The names of directories; where both have one name, the paths as they were given."""
    names = [path.resolve().name if path.name in ("", "..") else path.name for path in directories]
    return names if len(set(names)) == len(names) else list(map(str, directories))


def _settings(store: SweepStore, prefix: str, parsed: CompareArguments) -> list[_Ended]:
    found = []
    for setting in settings(store) if store.runs else []:
        ends = {
            run_id: end
            for run_id, rows in rows_by_run(setting.store, (TOTAL_FINAL,))
            if (end := end_of_run(rows, parsed.split, parsed.bounds))
        }
        if ends:
            runs = {_identity(store.runs[run_id]): run_id for run_id in ends}
            found.append(_Ended(prefix + setting.name, runs, Counter(ends.values())))
    return found


def _identity(run: RunDirectory) -> str:
    """What a run is, whatever its directory is called: two of one configuration are one run."""
    return json.dumps(run.config_json(), sort_keys=True)


def _uncounted(directory: Path, where: Sequence[str], num_counted: int) -> Iterator[str]:
    """Sentences on runs that do not count; the failed ones may be those that would end badly."""
    runs = chosen_runs(run_directories(unpack_if_zoo(directory).resolve()), where)
    now = time.time()
    states = Counter(read_status(run, now).state for run in runs)
    total, num_done, num_unreadable = len(runs), states["done"], states["unreadable"]
    if num_unfinished := total - num_done - num_unreadable:
        yield (
            f"{num_unfinished} of {total} runs are not finished, of which {states['failed']} "
            "failed; they do not count, so the shares are those of the others"
        )
    if num_unreadable:
        yield (
            f"{num_unreadable} of {total} runs cannot be read, and do not count; `epigrok check` "
            "says why"
        )
    if num_lacking := num_done - num_counted:
        yield f"{num_lacking} of {total} runs lack the split or 'point', and do not count"


def verdict(one: _Ended, other: _Ended) -> str:
    """The difference of two settings in a sentence; none is concluded from few runs."""
    shared = one.runs.keys() & other.runs.keys()
    if shared:
        name = min(one.runs[identity] for identity in shared)
        raise UserError(f"both settings hold run {name}; there is nothing to compare")
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
