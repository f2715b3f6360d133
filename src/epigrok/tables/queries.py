"""The queries behind the tables of a sweep, as text."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from epigrok.columns import ColumnType
from epigrok.errors import UserError
from epigrok.evaluation.schema import CONTEXT_LENGTH, POSTERIOR, SPLIT, STEP, TABLES
from epigrok.tables.sql_text import quoted_name, quoted_paths, quoted_text

LOWER, UPPER = 0.025, 0.975
"""Quantiles of the band: 95 % of the seeds lie within."""
SQL_TYPES: dict[ColumnType, str] = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "flag": "BOOLEAN",
}
LATEST = {"latest": ("final", "metrics"), "latest_positions": ("final_positions", "positions")}
"""View -> the final evaluation, and the curve whose end replaces it in unfinished runs."""


def json_lines_query(
    paths: Iterable[object], types: Mapping[str, str], strict: bool = False
) -> str:
    """Read typed columns from JSON lines.

    A line that is not JSON is an error if `strict`; otherwise it has no values.
    """
    columns = ", ".join(f"{quoted_text(name)}: {quoted_text(t)}" for name, t in types.items())
    return f"""from read_json({quoted_paths(paths)}, format = 'newline_delimited',
        columns = {{{columns}}}, ignore_errors = {str(not strict).lower()}, filename = true,
        hive_partitioning = false)"""


def newest_step_of_run(source: str) -> str:
    """The rows of each run's last step."""
    return f"select * from ({source}) qualify step = max(step) over (partition by run_id)"


def newest_step_of_posterior(source: str) -> str:
    """The rows of the last step at which each posterior of each run was evaluated."""
    return f"""select * from ({source})
        qualify step = max(step) over (partition by run_id, posterior)"""


def axes_of(table: str) -> list[str]:
    """Columns that identify a row of a run besides step, split and posterior."""
    if table in LATEST:
        return [CONTEXT_LENGTH.name] if table == "latest_positions" else []
    common = (STEP, SPLIT, POSTERIOR)
    return [column.name for column in TABLES[table].key if column not in common]


def columns_of(metric: str) -> list[str]:
    """The column that a metric is, or the two whose ratio it is: `epistemic/total`."""
    return metric.split("/", 1)


def band_query(
    source: str, metric: str, keys: Sequence[str], by: Sequence[str], filters: Sequence[str]
) -> str:
    """Median and band of a metric in each group of runs; `keys` are columns of `source`."""
    value, *over = [f"{quoted_name(name)}::double" for name in columns_of(metric)]
    value = f"({value} / nullif({over[0]}, 0))" if over else value
    where = " and ".join([*filters, f"{value} is not null", f"not isnan({value})"])
    own = ", ".join(map(quoted_name, dict.fromkeys(["run_id", *keys])))
    names = ", ".join(map(quoted_name, by))
    return f"""
        select {names}{", " if by else ""}
            band[2] as median, band[1] as lower, band[3] as upper, count
        from (select {names}{", " if by else ""}
                  quantile_cont(value, [{LOWER}, 0.5, {UPPER}]) as band, count(*) as count
              from (select {own}, {value} as value from ({source}) where {where})
              join runs using (run_id)
              {f"group by {names}" if by else ""} having count(*) > 0)
        {f"order by {names}" if by else ""}"""


def whole_number(name: str, value: Any) -> int:
    """`value` as a plain integer, also from NumPy's integers; refuse anything else."""
    try:
        return index(value)
    except TypeError:
        raise UserError(f"{name} must be a whole number, got {value!r}") from None


def require_columns(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that is not a column, and list the columns."""
    for name in names:
        if name not in known:
            raise UserError(f"no column {name!r}; there are: {', '.join(sorted(set(known)))}")
