"""The table of `epigrok status`: one line per run, with the columns that the terminal has room for.

Columns are left out whole, the least important first, because half a number says nothing.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from epigrok.config.run import SEED_FIELDS
from epigrok.config.splits import in_order, of_hardest
from epigrok.records.status import STATES, RunStatus
from epigrok.tables.fields import by_size, distinguishing_fields, varying_fields
from epigrok.wording import duration_text, printable, value_text

_STYLES = {"running": "cyan", "failed": "bold red", "lost": "bold yellow", "done": "green"}
_SHORT = {
    "task.num_base_tasks": "n_task",
    "task.num_train_tasks": "tasks",
    "task.train_fraction": "fraction",
    "run_seed": "seed",
    "num_steps": "steps",
}
_NONE = "-"
_NEEDED = 100
"""The loss of a column that always stays."""
_LONGEST = 32
_BREAK = "\n"
_GAP = 2
"""Spaces between two columns."""


@dataclass(frozen=True)
class _Column:
    """One column, before it is known whether there is room for it."""

    head: str
    cells: Sequence[str]
    loss: int
    """How much is lost without it: the column with the smallest loss goes first."""
    is_number: bool = True

    def shortened(self) -> "_Column":
        """With long names cut, which would take the room of all others."""
        is_long = [cell_len(cell) > _LONGEST for cell in self.cells]
        cells = [f"{c[: _LONGEST - 1]}…" if long else c for c, long in zip(self.cells, is_long)]
        return replace(self, cells=cells)

    @property
    def width(self) -> int:
        return max(map(cell_len, [*self.head.split(_BREAK), *self.cells]))

    @property
    def is_empty(self) -> bool:
        return all(cell == _NONE for cell in self.cells)


@dataclass(frozen=True)
class Fields:
    """The fields in which runs differ, by their part in a table."""

    presets: tuple[str, ...]
    """Of all runs whose configuration can be read."""
    swept: tuple[str, ...]
    implied: frozenset[str]
    """Of the swept ones, those that follow from earlier ones."""
    seeds: tuple[str, ...]

    @classmethod
    def of(cls, statuses: Sequence[RunStatus]) -> "Fields":
        """Those of some runs; a list, such as the posteriors, would leave no room for others."""
        configs = [status.config for status in statuses]
        lists = {name for config in configs for name, v in config.items() if isinstance(v, list)}
        varying = [n for n in varying_fields(configs) if n != "preset" and n not in lists]
        swept = tuple(name for name in varying if name not in SEED_FIELDS)
        return cls(
            presets=tuple(dict.fromkeys(str(c["preset"]) for c in configs if "preset" in c)),
            swept=swept,
            implied=frozenset(swept) - frozenset(distinguishing_fields(configs)),
            seeds=tuple(name for name in varying if name in SEED_FIELDS),
        )

    def loss(self, name: str, place: int) -> int:
        """How much is lost without a field: the first few tell rows apart, most of the time."""
        if name in self.implied:
            return 40
        if name == "run_seed":
            return 85
        return 89 - place if place < 3 else max(79 - place, 60)

    def order(self, status: RunStatus) -> Any:
        """Sort key: those that may need attention first, then by the values of fields and seeds."""
        names = ("preset", *self.swept, *self.seeds)
        values = [by_size(status.config.get(name)) for name in names]
        return STATES.index(status.state), values, status.run_id


def status_table(
    statuses: Sequence[RunStatus], fields: Fields, width: int, is_plain: bool
) -> tuple[Table, list[str]]:
    """The table, and the heads of the columns that it has no room for."""
    columns = _columns(statuses, fields, is_plain)
    columns, left_out = (columns, []) if is_plain else _fitting(columns, width)
    table = Table(
        box=None if is_plain else SIMPLE_HEAD,
        # A box adds a space between columns.
        padding=(0, _GAP if is_plain else _GAP - 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for column in columns:
        justify: Any = "right" if column.is_number else "left"
        table.add_column(Text(column.head), justify=justify, vertical="bottom", no_wrap=True)
    for row, status in enumerate(statuses):
        run, state, *others = (Text(column.cells[row]) for column in columns)
        state.stylize(_STYLES.get(status.state, ""))
        table.add_row(run, state, *others)
    return table, left_out


def _fitting(columns: list[_Column], width: int) -> tuple[list[_Column], list[str]]:
    """The columns that fit, and the heads of the others."""
    kept, left_out = [column.shortened() for column in columns], []
    while sum(column.width + _GAP for column in kept) - _GAP > width:
        # A column without a value is no loss.
        least = min(
            kept, key=lambda column: (column.loss == _NEEDED or not column.is_empty, column.loss)
        )
        if least.loss == _NEEDED:
            break
        kept.remove(least)
        left_out += [] if least.is_empty else [least.head.replace(_BREAK, " ")]
    return kept, left_out


def _columns(statuses: Sequence[RunStatus], fields: Fields, is_plain: bool) -> list[_Column]:
    """Every column, from left to right; heads have one line if `is_plain`."""
    unseen = {split.name for s in statuses for split in s.splits if split.shows_generalisation}
    splits = in_order(name for s in statuses for name in s.accuracy if name in unseen)
    heads = last_parts((*fields.swept, *fields.seeds), _SHORT)
    columns = [
        _Column("run", [printable(status.run_id) for status in statuses], _NEEDED, False),
        _Column("state", [status.state for status in statuses], _NEEDED, False),
    ]
    if len(fields.presets) > 1:
        cells = [printable(str(status.config.get("preset", "?"))) for status in statuses]
        columns.append(_Column("preset", cells, 90, False))
    for place, name in enumerate((*fields.swept, *fields.seeds)):
        cells = [_value(status.config.get(name)) for status in statuses]
        columns.append(_Column(heads[name], cells, fields.loss(name, place)))
    columns.append(_steps(statuses, is_plain))
    for place, name in enumerate(splits):
        cells = [_text(status.accuracy.get(name), "{:.3f}".format) for status in statuses]
        # The last split is the hardest, and says most.
        loss = 80 if name == splits[-1] else 45 + place
        columns.append(_Column(f"acc{' ' if is_plain else _BREAK}{name}", cells, loss))
    uncertain = [of_hardest(status.epistemic, status.splits) for status in statuses]
    measures: list[tuple[str, int, list[float | None], Callable[[Any], str]]] = [
        ("EU", 50, uncertain, value_text),
        ("steps/s", 20, [status.steps_per_second for status in statuses], "{:.1f}".format),
        ("left", 30, [status.seconds_left for status in statuses], duration_text),
        ("age", 10, [status.age_seconds for status in statuses], duration_text),
    ]
    for head, loss, values, how in measures:
        if head != "EU" or any(status.epistemic for status in statuses):
            columns.append(_Column(head, [_text(value, how) for value in values], loss))
    return columns


def _steps(statuses: Sequence[RunStatus], is_plain: bool) -> _Column:
    """How far each run is; a common number of steps takes less room in the head."""
    numbers = {status.num_steps for status in statuses}
    if is_plain or len(numbers) > 1:
        cells = [f"{status.step}/{status.num_steps}" for status in statuses]
        return _Column("step", cells, _NEEDED)
    head = _BREAK.join(["step", *(f"of {number}" for number in numbers)])
    return _Column(head, [str(status.step) for status in statuses], _NEEDED)


def last_parts(names: Sequence[str], short: Mapping[str, str] | None = None) -> dict[str, str]:
    """Field -> its last part, or a name from `short`; the whole name where two would be alike."""
    ends = {name: (short or {}).get(name, name.rpartition(".")[2]) for name in names}
    number = Counter(ends.values())
    return {name: printable(end if number[end] == 1 else name) for name, end in ends.items()}


def _value(value: Any) -> str:
    """A value of a field."""
    if value is None:
        return _NONE
    return f"{value:g}" if isinstance(value, float) else printable(str(value))


def _text(value: float | None, how: Callable[[Any], str]) -> str:
    return _NONE if value is None else how(value)
