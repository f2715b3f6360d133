"""The tables of the results pages, made from the files beside them.

    PYTHONPATH=. python -m benchmarks.result_tables          # which pages are out of date?
    PYTHONPATH=. python -m benchmarks.result_tables --write  # bring them up to date

A page says in a comment which query makes a table, and the table follows:

    <!-- table
    select run_seed as seed, columns('accuracy.*') from accuracies('icl-medium/metrics.parquet')
    -->
    | seed | accuracy: trained on |
    ...
    <!-- end -->

The names of the result's columns are the table's heading. Paths are relative to the page.
"""

import argparse
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path

import duckdb

from benchmarks.result_times import ends_of_runs, times_of_runs
from epigrok.config.serialisation import flatten
from epigrok.evaluation.proportions import share
from epigrok.monitor import MonitorSettings
from epigrok.sweeps.description import runs_of
from epigrok.sweeps.shipped import find_sweep

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"
LOG = FOLDER.parent / "experiment-log.md"
TABLE = re.compile(r"(<!-- table\n(.*?)\n-->\n).*?(<!-- end -->)", re.DOTALL)
_TIMES = (
    "create table times(file varchar, preset varchar, run_id varchar, posterior varchar, "
    "fitted_step bigint, peak_step bigint, generalised_step bigint, collapsed_step bigint)"
)
_ENDS = (
    "create table ends(file varchar, preset varchar, run_id varchar, split varchar, ended varchar)"
)
_MACROS = Path(__file__).with_name("result_macros.sql").read_text().replace("RESULTS", str(FOLDER))


def updated(text: str, folder: Path) -> str:
    """The page with all its tables made anew."""
    return TABLE.sub(lambda found: f"{found[1]}{table_of(found[2], folder)}{found[3]}", text)


def table_of(query: str, folder: Path) -> str:
    """The result of a query as a Markdown table."""
    heading, *rows = cells_of(query, folder)
    ruled = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in ruled)


def cells_of(query: str, folder: Path) -> list[list[str]]:
    """The result of a query as text, its columns' names first."""
    with duckdb.connect() as connection:
        connection.execute(f"set file_search_path = '{folder}'")
        connection.execute(f"create view log as select content from read_text('{LOG}')")
        connection.execute("create table constants(name varchar, value varchar)")
        connection.executemany("insert into constants values (?, ?)", _constants())
        connection.execute("create table sweeps(name varchar, num_runs bigint, num_steps bigint)")
        if re.search("sweeps|grids", query):
            # Seconds, because every run of every grid is described.
            connection.executemany("insert into sweeps values (?, ?, ?)", _sweeps())
        connection.execute(_TIMES)
        if "runs_that_grok" in query or "from times" in query:
            connection.executemany(
                "insert into times values (?, ?, ?, ?, ?, ?, ?, ?)", times_of_runs(FOLDER)
            )
        connection.execute(_ENDS)
        if "from ends" in query:
            connection.executemany("insert into ends values (?, ?, ?, ?, ?)", ends_of_runs(FOLDER))
        connection.create_function("share", _share, ["BIGINT", "BIGINT"], "VARCHAR")
        connection.execute(_MACROS)
        result = connection.execute(query)
        lines = [[column[0] for column in result.description], *result.fetchall()]
    if len(lines) == 1:
        raise ValueError(f"no rows: {query}")
    return [[_cell(value) for value in line] for line in lines]


@cache
def _constants() -> list[tuple[str, str]]:
    """What the monitor's rule is made of, as (`rule.threshold`, `0.37`)."""
    return [(name, str(value)) for name, value in flatten(asdict(MonitorSettings())).items()]


@cache
def _sweeps() -> list[tuple[str, int, int]]:
    """Name, runs and steps of the sweeps that pages speak of."""
    names = ("paper", "paper-medium", "paper-small", "paper-tiny", "fates-small")
    found = {name: runs_of(find_sweep(name)) for name in names}
    return [
        (name, len(runs), sum(config.num_steps for config in runs.values()))
        for name, runs in found.items()
    ]


def _share(successes: int, number: int) -> str:
    """A share with its 95 % interval."""
    return str(share(successes, number))


def _cell(value: object) -> str:
    if isinstance(value, float):
        raise ValueError(f"say how {value!r} is written: two(x), small(x) or printf")
    return "" if value is None else str(value).replace("|", "\\|")


def pages() -> list[Path]:
    """All pages that have such tables."""
    return [page for page in sorted(FOLDER.parent.rglob("*.md")) if TABLE.search(page.read_text())]


def main() -> None:
    """Compare the pages with their data, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    for page in pages():
        text = page.read_text()
        new = updated(text, page.parent)
        if new != text:
            told = "written" if write else "differs from its data"
            print(f"{page.relative_to(FOLDER.parent)}: {told}")
            if write:
                page.write_text(new)


if __name__ == "__main__":
    main()
