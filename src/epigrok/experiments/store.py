"""One query over all runs of a sweep: SQL on the files themselves, with DuckDB.

runs         one row per run: run_id, state and its configuration under dotted names ("optim.lr")
metrics      one row per run, step, split and posterior
training     loss, gradient norm and learning_rate_scale at evaluated steps
timings      seconds spent
calibration  accuracy against confidence in bins, at the last step
positions    metrics per context length, also of runs that are still going on
evaluation, context_length_sweep, context_noise_sweep    what was evaluated after training

A name with a dot needs double quotes. Every query reads the files anew; which runs and columns
there are is looked up when a table is first asked for.
"""

import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import duckdb

from epigrok.errors import UserError
from epigrok.experiments.json_columns import columns_of_json_lines, type_of_values
from epigrok.experiments.last_rows import last_step_lines
from epigrok.experiments.run_files import PARQUET, RunDirectory, run_directories
from epigrok.experiments.sql_text import quoted_name, quoted_path, quoted_paths, quoted_text
from epigrok.experiments.status import RunStatus, read_status
from epigrok.experiments.store_queries import (
    APART,
    FACTS,
    KEYS,
    LINES,
    band_query,
    points_query,
    read_json_query,
    require_columns,
    whole_number,
)
from epigrok.experiments.zoo import located
from epigrok.files import make_writable_directory, write_by

VIEWS = ("runs", *LINES, "positions")
Relation = Any
"""What DuckDB calls `DuckDBPyRelation`: a query with `.fetchall()`, `.fetchnumpy()`, `.df()`."""
Connection = Any
"""And what it calls `DuckDBPyConnection`."""
_RUN_ID = "split_part(filename, '/', -2) as run_id"
"""A run is named by its directory."""


def open_sweep(
    directory: Path | str, done_only: bool = False, seeds_apart: bool = False
) -> "SweepStore":
    """The results of a sweep's directory, or of one run's, ready to be asked.

    Args:
        directory: Of a sweep or of a single run; `zoo:NAME` is one that comes with the package.
        done_only: Leave out runs that are not finished.
        seeds_apart: Figures show every run by itself, instead of medians over seeds.
    """
    path = located(directory).resolve()
    runs = run_directories(path)
    if not runs:
        raise UserError(f"there are no runs in {path}")
    kept = [run for run in runs if run.is_done] if done_only else runs
    return SweepStore(path, kept, seeds_apart)


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
        self._runs = {run.path.name: run for run in runs}
        self._connection = connection or duckdb.connect()
        self._made: set[str] = set()
        self._num_extracts = 0
        self._lines: dict[str, tuple[list[Path], dict[str, str]]] = {}
        """Files and column types of the tables that are JSON lines."""

    def of_runs(self, run_ids: Iterable[str]) -> "SweepStore":
        """The tables of some of these runs; reading few files takes little time."""
        runs = [self._runs[name] for name in run_ids]
        # Of the same database, as starting one takes long; all a store makes in it is temporary,
        # which in DuckDB means its own.
        return SweepStore(self.path, runs, self.seeds_apart, self._connection.cursor())

    def sql(self, query: str) -> Relation:
        """The relation a query describes; `.fetchall()`, `.fetchnumpy()` or `.df()` read it."""
        lowered = query.lower()
        self._make(view for view in VIEWS if view in lowered)
        try:
            return self._connection.sql(query)
        except duckdb.Error as error:
            raise UserError(f"the query does not work: {str(error).strip()}") from error

    def columns(self, view: str) -> list[str]:
        """The columns of a table."""
        if view not in VIEWS:
            raise UserError(f"no table named {view!r}; there are: {', '.join(VIEWS)}")
        return list(self.sql(f"from {view} limit 0").columns)

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
            metric: A column of `metrics`; if `by` names `context_length` of `positions`, and if it
                names `context_noise` of `context_noise_sweep`.
            by: Columns that tell groups apart, of the table or of the configuration. All runs
                that agree in them count as seeds of one group.
            split: Only this one; otherwise each is a group of its own, where the table has splits.
            posterior: The same.
            step: One step, each run's `last` evaluated one, or None for every step as a group of
                its own. Where a step was evaluated with several numbers of samples, the last one
                counts with the most, curves with the fewest, which all their steps have.
            table: Another table to take the metric from; what else tells its rows apart, as the
                context length does in `positions`, makes groups too.

        Returns:
            A row per group: the columns of `by`, `median`, `lower`, `upper`, `count`.
        """
        if table is None:
            table = "positions" if "context_length" in by else "metrics"
            table = "context_noise_sweep" if "context_noise" in by else table
        by = [by] if isinstance(by, str) else by
        step = step if step is None or step == "last" else whole_number("step", step)
        own, config = self.columns(table), self.columns("runs")
        texts = {"split": split, "posterior": posterior}
        wanted = {name: value for name, value in texts.items() if value is not None}
        given = {**texts, "step": step}
        apart = [name for name, value in given.items() if value is None and name in own]
        by = list(dict.fromkeys([*by, *apart, *APART.get(table, ())]))
        require_columns([metric, *wanted], own)
        require_columns(by, own + config)
        filters = [f"{name} = {quoted_text(value)}" for name, value in wanted.items()]
        filters += [f"step = {step}"] if isinstance(step, int) else []
        keys = [name for name in by if name in own]
        needed = {*KEYS[table], metric, *keys} - {"run_id", "num_rows"}
        last_rows = self._last_rows(table, needed, filters) if step == "last" else None
        source = last_rows or f"({self._lines_query(table, sorted(needed))})"
        points = points_query(table, source, metric, keys, filters, step)
        return self.sql(band_query(points, by))

    def export(self, file: Path) -> int:
        """Write all metrics, with the configuration of their runs, as one Parquet file.

        Returns:
            The number of rows.
        """
        make_writable_directory(file.absolute().parent)
        self._make(("runs", "metrics"))

        def fill(unfinished: Path) -> None:
            self._connection.execute(
                f"""copy (select m.*, r.* exclude (run_id) from metrics m join runs r using (run_id)
                          order by run_id, step) to {quoted_text(unfinished)}
                    (format parquet, compression zstd)"""
            )

        write_by(file, fill)
        (rows,) = self._connection.sql(f"select count(*) from {quoted_path(file)}").fetchall()
        return int(rows[0])

    def _make(self, views: Iterable[str]) -> None:
        for view in views:
            if view in self._made:
                continue
            try:
                if view == "runs":
                    self._make_runs()
                elif view == "positions":
                    self._make_positions()
                else:
                    self._make_lines(view)
            except duckdb.Error as error:
                raise UserError(f"the files of {view} cannot be read: {error}") from error
            self._made.add(view)

    def _make_runs(self) -> None:
        now = time.time()
        rows = [
            {"run_id": name, **_described(read_status(run, now))}
            for name, run in self._runs.items()
        ]
        if not rows:
            self._connection.execute("create temp table runs (run_id varchar, state varchar)")
            return
        names = dict.fromkeys(name for row in rows for name in row)
        types = {name: type_of_values(row.get(name) for row in rows) for name in names}
        # DuckDB reads JSON only from files.
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            query = f"select * exclude (filename) {read_json_query([file.name], types)}"
            self._connection.execute(f"create temp table runs as {query}")

    def _make_lines(self, view: str) -> None:
        files = [run.table(LINES[view]) for run in self._runs.values()]
        paths = [path for path in files if path.exists()]
        columns = columns_of_json_lines(paths)
        if not columns:
            self._make_empty(view)
            return
        columns |= FACTS.get(view, {})
        self._lines[view] = paths, {**columns, **KEYS[view]}
        names = [*KEYS[view], *(name for name in columns if name not in KEYS[view])]
        self._connection.execute(f"create temp view {view} as {self._lines_query(view, names)}")

    def _lines_query(self, view: str, names: Iterable[str]) -> str:
        """Some columns of a table; each one that is left out saves time."""
        if view not in self._lines:
            return f"from {view}"
        paths, columns = self._lines[view]
        # A last line cut short by a kill, or still being written, has no step.
        source = read_json_query(paths, {name: columns[name] for name in names})
        return f"select {_RUN_ID}, * exclude (filename) {source} where step is not null"

    def _last_rows(self, view: str, names: Iterable[str], filters: list[str]) -> str | None:
        """A table of each run's last rows, if what is wanted is among them."""
        if view not in self._lines:
            return None
        paths, columns = self._lines[view]
        types = {"run_id": "VARCHAR", **{name: columns[name] for name in names}}
        # A name of its own, because results are only read when somebody looks at them.
        self._num_extracts += 1
        table = f"last_rows_{self._num_extracts}"
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            for path in paths:
                run = json.dumps(path.parent.name).encode()
                lines = last_step_lines(path)
                file.writelines(b'{"run_id": ' + run + b", " + line[1:] + b"\n" for line in lines)
            file.flush()
            query = read_json_query([file.name], types)
            self._connection.execute(f"create temp table {table} as {query}")
        query = f"select count(*) from {table} where {' and '.join(filters) or 'true'}"
        return table if self._connection.execute(query).fetchall()[0][0] else None

    def _make_positions(self) -> None:
        # A machine without DuckDB leaves the small files of a finished run as they are.
        in_shards = {
            name: run
            for name, run in self._runs.items()
            if _has_shards(run) and not (run.is_done and (run.path / PARQUET).exists())
        }
        merged = [
            run.path / PARQUET
            for name, run in self._runs.items()
            if name not in in_shards and (run.path / PARQUET).exists()
        ]
        parts = []
        if merged:
            parts.append(
                f"""select {_RUN_ID}, * exclude (filename)
                    from read_parquet({quoted_paths(merged)}, filename = true, union_by_name = true,
                        hive_partitioning = false)"""
            )
        # Here and not above: finished sweeps need neither NumPy nor safetensors.
        from epigrok.experiments.position_shards import position_columns

        for number, (name, run) in enumerate(in_shards.items()):
            shards = f"positions_shards_{number}"
            self._connection.register(shards, position_columns(run.path))
            parts.append(f"select {quoted_text(name)} as run_id, * from {shards}")
        if not parts:
            self._make_empty("positions")
            return
        self._connection.execute(
            f"create temp view positions as {' union all by name '.join(parts)}"
        )

    def _make_empty(self, view: str) -> None:
        types = {"run_id": "VARCHAR", **KEYS[view], **FACTS.get(view, {})}
        columns = ", ".join(f"{quoted_name(name)} {kind}" for name, kind in types.items())
        self._connection.execute(f"create temp table {view} ({columns})")


def _described(status: RunStatus) -> dict[str, Any]:
    return {"state": status.state, **status.config}


def _has_shards(run: RunDirectory) -> bool:
    return any((run.path / "positions").glob("step-*.safetensors"))
