"""`epigrok columns`: every table of a run and what its columns mean, as Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from epigrok.columns import Column
from epigrok.commands.arguments import parse
from epigrok.config.splits import SPLITS
from epigrok.errors import UserError
from epigrok.evaluation.schema import METRICS, NUM_SAMPLES, NUM_SEQUENCES, TABLES, Table

_VIEWS = {
    ("runs",): (
        "### `runs`",
        "",
        "One row per run: `run_id`, `state`, and its configuration under dotted names.",
    ),
    ("latest", "latest_positions"): (
        "### `latest`, `latest_positions`",
        "",
        "The final evaluation of a run, or the end of its curve while the run is unfinished;",
        "`latest_positions` has it by context length.",
    ),
}
"""Names -> the page's section on tables that are made of others."""


@dataclass(frozen=True, kw_only=True)
class ColumnsArguments:
    """Explain the tables of a run: what a row is, and what each column means."""

    table: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[TABLE]")] = ""
    """Explain only this table."""


def main(arguments: Sequence[str]) -> int:
    """Print the page, or one table of it."""
    name = parse(ColumnsArguments, "columns", arguments).table
    if not name:
        print(columns_page())
        return 0
    if name in TABLES:
        print("\n".join(_table(TABLES[name])))
        return 0
    view = next((lines for names, lines in _VIEWS.items() if name in names), None)
    if view is None:
        names = [*TABLES, *(name for names in _VIEWS for name in names)]
        raise UserError(f"no table named {name!r}; there are: {', '.join(names)}")
    print("\n".join(view))
    return 0


def columns_page() -> str:
    """The whole page."""
    # Imported here, because explaining one table needs no torch.
    from epigrok.posteriors import posterior_kinds

    facts: dict[Column, list[str]] = {}
    for name, kind in posterior_kinds().items():
        for fact in kind.facts:
            facts.setdefault(fact, []).append(f"`{name}`")
    lines = [
        "# Tables and columns",
        "",
        "`epigrok columns` prints this page. In SQL, every table also has a column `run_id`. Names",
        "with a dot, which only `runs` has, need double quotes.",
        "",
        "## Metrics",
        "",
        "A metric covers all answers of a sequence; with the suffix `_final`, the last one alone.",
        "In tables with a context length or noise, it covers the one answer asked there and has no",
        "suffix.",
        "",
        *_rows(METRICS),
        "",
        "## Facts of posteriors",
        "",
        "Rows of some posteriors have more columns, in `metrics`, `final` and `evaluation`.",
        "",
        "| column | type | unit | meaning | posteriors |",
        "|---|---|---|---|---|",
        *(f"{_row(fact)} {', '.join(names)} |" for fact, names in facts.items()),
        "",
        "## Splits",
        "",
        "| split | tasks seen | inputs seen | what it is |",
        "|---|---|---|---|",
        *(
            f"| `{split.name}` | {_word(split.tasks_seen)} | {_word(split.inputs_seen)} | "
            f"{split.meaning} |"
            for split in SPLITS
        ),
        "",
        "## Tables",
    ]
    for table in TABLES.values():
        lines += ["", *_table(table)]
    for view in _VIEWS.values():
        lines += ["", *view]
    return "\n".join(lines)


def _table(table: Table) -> list[str]:
    names = ", ".join(f"`{column.name}`" for column in table.key)
    kept = f"`{table.file}`" if table.file else "`positions-0.parquet`"
    others = [column for column in table.values if column not in _SCORES]
    lines = [f"### `{table.name}`", "", f"{table.meaning[0].upper()}{table.meaning[1:]}."]
    lines += [f"One row per {names}. Kept in {kept}.", ""]
    text = _rows((*table.key, *others))
    if len(others) < len(table.values):
        text.append("| … | | | the metrics above |")
    return lines + text


_SCORES = set(TABLES["final"].values) - {NUM_SAMPLES, NUM_SEQUENCES}


def _rows(columns: Iterable[Column]) -> list[str]:
    return ["| column | type | unit | meaning |", "|---|---|---|---|", *map(_row, columns)]


def _row(column: Column) -> str:
    return f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} |"


def _word(is_true: bool) -> str:
    return "yes" if is_true else "no"
