"""The store: the tables of many runs as one, asked with SQL on the files themselves (DuckDB).

`runs` has one row per run: run_id, state and its configuration under dotted names ("optim.lr"). The
other tables are those of `evaluation/schema.py`, with the run in the column `run_id`. Two views
join tables: `latest` has the final evaluation of a run, or while it goes on the end of its curve;
`latest_positions` the same by context length.

A name with a dot needs double quotes. Every query reads the files anew; which runs there are is
looked up when the store is opened.
"""

import glob
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import duckdb

from epigrok.config.checks import require
from epigrok.config.where import Where
from epigrok.errors import UserError
from epigrok.evaluation.schema import POSTERIOR, SPLIT, STEP, TABLES
from epigrok.files import make_writable_directory, write_by
from epigrok.records.directory import RunDirectory, run_directories
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tables.choosing import chosen_runs
from epigrok.tables.parquet import write_parquet
from epigrok.tables.positions_source import RUN_ID, empty_table, positions_source
from epigrok.tables.queries import (
    LATEST,
    SQL_TYPES,
    axes_of,
    band_query,
    columns_of,
    json_lines_query,
    newest_step_of_posterior,
    newest_step_of_run,
    require_columns,
    whole_number,
)
from epigrok.tables.query_parser import tables_named_in
from epigrok.tables.readable import damaged_runs, is_strict, problem_with_table
from epigrok.tables.runs_view import make_runs_view
from epigrok.tables.sql_text import quoted_name, quoted_path, quoted_text

VIEWS = ("runs", *TABLES, *LATEST)
Relation = Any
"""What DuckDB calls `DuckDBPyRelation`: a query with `.fetchall()`, `.fetchnumpy()`, `.df()`."""
Connection = Any
"""And what it calls `DuckDBPyConnection`."""


def open_sweep(
    directory: Path | str,
    done_only: bool = False,
    seeds_apart: bool = False,
    verified: bool = False,
    where: Sequence[str] = (),
) -> "SweepStore":
    """The results of a sweep's directory, or of one run's, ready to be asked.

    Args:
        directory: Of a sweep or of a single run; `zoo:NAME` is one that comes with the package.
        done_only: Leave out runs that are not finished.
        seeds_apart: Figures show every run by itself, instead of medians over seeds.
        verified: Compare digests first, and leave out runs that are damaged: `left_out` names them.
        where: Only runs that meet these conditions, such as `task.train_fraction=0.8`.
    """
    path = unpack_if_zoo(directory).resolve()
    runs = run_directories(path)
    if not runs:
        raise UserError(f"there are no runs in {path}")
    chosen = chosen_runs(runs, where)
    kept = [run for run in chosen if run.is_done] if done_only else chosen
    left_out = damaged_runs(kept) if verified else {}
    if kept and len(left_out) == len(kept):
        raise UserError(f"{next(iter(left_out.values()))}; look at it with `epigrok check`")
    store = SweepStore(path, [run for run in kept if run.path.name not in left_out], seeds_apart)
    store.left_out, store.chosen_by = left_out, Where.parse(where).text
    return store


class SweepStore:
    """The tables of some runs."""

    def __init__(
        self,
        path: Path,
        runs: Sequence[RunDirectory],
        seeds_apart: bool = False,
        connection: Connection | None = None,
    ) -> None:
        self.path = path
        self.seeds_apart = seeds_apart
        self.runs = {run.path.name: run for run in runs}
        self.left_out: dict[str, str] = {}
        """Damaged runs, and what is wrong with each."""
        self.chosen_by = ""
        """The conditions that its runs were chosen by, in words."""
        self._connection = connection or _connection_to(path, runs)
        self._made: set[str] = set()

    def of_runs(self, run_ids: Iterable[str]) -> "SweepStore":
        """The tables of some of these runs; reading few files takes little time."""
        runs = [self.runs[name] for name in run_ids]
        # Of the same database, as starting one takes long; all a store makes in it is temporary,
        # which in DuckDB means its own.
        return SweepStore(self.path, runs, self.seeds_apart, self._connection.cursor())

    def sql(self, query: str) -> Relation:
        """The relation a query describes; `.fetchall()`, `.fetchnumpy()` or `.df()` read it."""
        wanted = tables_named_in(query, self._connection)
        return self._ask(query, [view for view in VIEWS if wanted is None or view in wanted])

    def columns(self, view: str) -> list[str]:
        """The columns of a table."""
        if view not in VIEWS:
            raise UserError(f"no table named {view!r}; there are: {', '.join(VIEWS)}")
        if view == "runs":
            return list(self.sql("from runs limit 0").columns)
        return ["run_id", *self._types(view)]

    def median_and_band(
        self,
        metric: str,
        by: Sequence[str] = (),
        split: str | None = None,
        posterior: str | None = None,
        step: SupportsIndex | str | None = "last",
        table: str | None = None,
    ) -> Relation:
        """Median of a metric over seeds and the band that 95 % of them lie in.

        Args:
            metric: A column of the table, or the ratio of two, as in `epistemic/total`.
            by: Columns that distinguish groups, of the table or of the configuration. All runs
                that agree in them count as seeds of one group.
            split: Only this one; otherwise each is a group of its own, where the table has splits.
            posterior: The same.
            step: One step, each run's `last`, or None for every step as a group of its own.
            table: By default `latest` for the last step and `metrics` for others; if `by` names
                `context_length`, the same by context length, and `context_noise` if it names that.

        Returns:
            A row per group with the columns of `by`, `median`, `lower`, `upper`, `count`.
        """
        by = [by] if isinstance(by, str) else list(by)
        step = step if step is None or step == "last" else whole_number("step", step)
        table = table or _default_table(by, step)
        own, config = self.columns(table), self.columns("runs")
        wanted = {SPLIT.name: split, POSTERIOR.name: posterior, STEP.name: step}
        filters = [
            f"{name} = {quoted_text(value)}"
            for name, value in wanted.items()
            if value is not None and value != "last"
        ]
        needed = [n for n, v in wanted.items() if v not in (None, "last")]
        require_columns([*columns_of(metric), *needed], own)
        apart = [name for name, value in wanted.items() if value is None and name in own]
        by = list(dict.fromkeys([*by, *apart, *axes_of(table)]))
        require_columns(by, own + config)
        keys = [name for name in by if name in own and name != "run_id"]
        scored = [name for name in (STEP.name, SPLIT.name, POSTERIOR.name) if name in own]
        names = list(dict.fromkeys([*scored, *keys, *columns_of(metric)]))
        source = self._source(table, names)
        if step == "last" and table not in LATEST:
            newest = newest_step_of_posterior if POSTERIOR.name in own else newest_step_of_run
            source = newest(source)
        return self._ask(band_query(source, metric, keys, by, filters), ["runs"])

    def export(self, file: Path, table: str = "metrics") -> int:
        """Write a table, with the configuration of its runs, as one Parquet file.

        Returns:
            The number of rows.
        """
        make_writable_directory(file.absolute().parent)
        # A database of its own: the one that answers questions may write nothing.
        with duckdb.connect() as connection:
            runs = list(self.runs.values())
            return SweepStore(self.path, runs, connection=connection)._write(file, table)

    def _write(self, file: Path, table: str) -> int:
        columns = [name for name in self.columns(table) if name != "run_id"]
        config = [name for name in self.columns("runs") if name not in (*columns, "run_id")]
        chosen = ", ".join([f"t.{quoted_name(n)}" for n in columns])
        chosen += "".join(f", r.{quoted_name(n)}" for n in config)
        self._make(("runs",))
        query = f"""select t.run_id, {chosen} from ({self._source(table, columns)}) t
                    join runs r using (run_id) order by all"""

        def fill(unfinished: Path) -> None:
            write_parquet(self._connection, query, unfinished)

        write_by(file, fill)
        (rows,) = self._connection.sql(f"select count(*) from {quoted_path(file)}").fetchall()
        return int(rows[0])

    def _ask(self, query: str, views: Iterable[str]) -> Relation:
        """The relation of a query that needs these views."""
        try:
            self._make(views)
            return self._connection.sql(query)
        except duckdb.Error as error:
            raise UserError(f"the query does not work: {str(error).strip()}") from error

    @cached_property
    def _facts(self) -> dict[str, str]:
        """Columns that only some posteriors of these runs have, and their types."""
        found: dict[str, str] = {}
        for run in self.runs.values():
            try:
                description = run.description()
            except UserError:
                continue  # `runs` says that it cannot be read
            for posterior in description.posteriors:
                found |= {fact.name: SQL_TYPES[fact.type] for fact in posterior.facts}
        return found

    def _types(self, table: str) -> dict[str, str]:
        """Columns of a table and their types."""
        if table in LATEST:
            return self._types(LATEST[table][0])
        schema = TABLES[table]
        types = {column.name: SQL_TYPES[column.type] for column in schema.columns}
        return {**types, **self._facts} if schema.has_facts else types

    def _make(self, views: Iterable[str]) -> None:
        for view in views:
            if view in self._made:
                continue
            if view == "runs":
                make_runs_view(self._connection, list(self.runs.values()))
            else:
                source = self._source(view, self._types(view))
                self._connection.execute(f"create temp view {view} as {source}")
            self._made.add(view)

    def _source(
        self, table: str, names: Iterable[str], runs: Iterable[RunDirectory] | None = None
    ) -> str:
        """A query for some columns of a table, in these runs or all; each column takes time."""
        runs = list(self.runs.values() if runs is None else runs)
        names = list(names)
        for run in runs if table not in LATEST else ():
            problem = problem_with_table(run, table)
            require(problem is None, f"{problem}; look at the run with `epigrok check`")
        if table in LATEST:
            final, curve = LATEST[table]
            # Emptied where a run goes back to before its last step.
            ended = [run for run in runs if _has_content(run.table("final"))]
            going_on = [run for run in runs if run not in ended]
            end_of_curve = newest_step_of_run(self._source(curve, names, going_on))
            return f"{self._source(final, names, ended)} union all by name {end_of_curve}"
        types = self._types(table)
        types = {name: types[name] for name in dict.fromkeys([STEP.name, *names])}
        if not TABLES[table].file:
            return positions_source(self._connection, self._made, table, types, runs)
        parts = []
        for strict in (True, False):
            paths = [
                path
                for run in runs
                if (path := run.table(table)).exists() and is_strict(run, table) == strict
            ]
            if paths:
                source = json_lines_query(paths, types, strict)
                # A last line cut short by a kill, or still being written, has no step.
                chosen = f"select {RUN_ID}, * exclude (filename) {source}"
                parts.append(f"{chosen} where step is not null")
        return " union all by name ".join(parts) or empty_table(types)


def _connection_to(directory: Path, runs: Iterable[RunDirectory]) -> Connection:
    """A database that can read the files of a directory and of its runs, and no others."""
    connection = duckdb.connect()
    # A run may be a link to a directory elsewhere.
    paths = [directory, *(run.path.resolve() for run in runs if run.path.is_symlink())]
    # Brackets in a path are escaped when it is read, and compared as they are then.
    spelled = dict.fromkeys(name for path in paths for name in (path, glob.escape(str(path))))
    connection.execute(f"set allowed_directories = [{', '.join(map(quoted_text, spelled))}]")
    connection.execute("set enable_external_access = false")
    return connection


def _default_table(by: Sequence[str], step: int | str | None) -> str:
    if "context_noise" in by:
        return "context_noise"
    if "context_length" in by:
        return "latest_positions" if step == "last" else "positions"
    return "latest" if step == "last" else "metrics"


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0
