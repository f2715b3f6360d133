"""The queries behind the tables of a sweep, as text."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from epigrok.errors import UserError
from epigrok.experiments.sql_text import quoted_name, quoted_paths, quoted_text

LOWER, UPPER = 0.025, 0.975
"""Quantiles of the band: 95 % of the seeds lie within."""

LINES = {
    "metrics": "metrics",
    "training": "training",
    "timings": "timings",
    "calibration": "calibration",
    "evaluation": "evaluation",
    "context_length_sweep": "context-length",
    "context_noise_sweep": "context-noise",
}
"""Table -> name of the JSON-lines file in a run directory that it is read from."""

_SCORED = {"step": "BIGINT", "split": "VARCHAR", "posterior": "VARCHAR"}
_SCORED |= {"num_samples": "BIGINT", "num_rows": "BIGINT"}
_CONTEXT = {"context_length": "BIGINT", "context_noise": "DOUBLE"}

KEYS = {
    "metrics": _SCORED,
    "training": {"step": "BIGINT"},
    "timings": {"step": "BIGINT"},
    "calibration": _SCORED | {"bin": "BIGINT", "count": "BIGINT"},
    "evaluation": _SCORED,
    "context_length_sweep": _SCORED | _CONTEXT,
    "context_noise_sweep": _SCORED | _CONTEXT,
    "positions": {"step": "INTEGER", "split": "VARCHAR", "posterior": "VARCHAR"}
    | {"num_samples": "INTEGER", "context_length": "SMALLINT"},
}
"""Columns that a table has even before a run has written a row."""
APART = {
    "calibration": ("bin",),
    "context_length_sweep": ("context_length",),
    "context_noise_sweep": ("context_noise",),
    "positions": ("context_length",),
}
"""What tells rows of one run apart, besides step, split and posterior."""
_FACTS = {"prior_precision": "DOUBLE", "log_evidence": "DOUBLE", "num_fit_answers": "BIGINT"}
_FACTS |= {"prior_precision_is_at_bound": "BOOLEAN"}
FACTS = {"metrics": _FACTS, "evaluation": _FACTS}
"""Columns that only rows of Laplace posteriors have: too few for a look at a file's ends."""
_MAX_SAMPLES = 1_000_000


def read_json_query(paths: Iterable[object], types: Mapping[str, str]) -> str:
    """Read columns of certain types from JSON lines; a line that is no JSON has none of them."""
    columns = ", ".join(f"{quoted_text(name)}: {quoted_text(t)}" for name, t in types.items())
    return f"""from read_json({quoted_paths(paths)}, format = 'newline_delimited',
        columns = {{{columns}}}, ignore_errors = true, filename = true,
        hive_partitioning = false)"""


def points_query(
    table: str,
    source: str,
    metric: str,
    keys: list[str],
    filters: list[str],
    step: int | str | None,
) -> str:
    """The query for one `value` per run and point of `source`, which is (part of) `table`.

    A step may have been evaluated with several numbers of samples: one of them counts.
    """
    is_last = step == "last"
    apart = [name for name in KEYS[table] if name not in ("num_samples", "num_rows")]
    groups = dict.fromkeys(["run_id", *apart, *keys])
    if is_last:
        del groups["step"]
    if is_last and table == "positions":
        # The column of steps is quick to read, and spares reading the others.
        where = " and ".join(filters) or "true"
        newest = f"select run_id, max(step) from {table} where {where} group by run_id"
        filters = [*filters, f"(run_id, step) in ({newest})"]
    value = f"{quoted_name(metric)}::double"
    order = "coalesce(num_samples, 0)" if "num_samples" in KEYS[table] else "0"
    order = f"step::bigint * {_MAX_SAMPLES} + {order}" if is_last else order
    names = ", ".join(map(quoted_name, groups))
    return f"""
        select {names}, {"max(step) as step, " if is_last else ""}
            {"arg_min" if step is None else "arg_max"}({value}, {order}) as value
        from {source}
        where {" and ".join([*filters, f"{value} is not null", f"not isnan({value})"])}
        group by {names}"""


def band_query(points: str, by: Sequence[str]) -> str:
    """Median and band of the values of `points` in each group of runs."""
    names = ", ".join(map(quoted_name, by))
    return f"""
        select {names}{", " if by else ""}
            band[2] as median, band[1] as lower, band[3] as upper, count
        from (select {names}{", " if by else ""}
                  quantile_cont(value, [{LOWER}, 0.5, {UPPER}]) as band, count(*) as count
              from ({points}) join runs using (run_id)
              {f"group by {names}" if by else ""} having count(*) > 0)
        {f"order by {names}" if by else ""}"""


def whole_number(name: str, value: Any) -> int:
    """`value` as a plain integer, NumPy's included; anything else is refused."""
    try:
        return index(value)
    except TypeError:
        raise UserError(f"{name} must be a whole number, got {value!r}") from None


def require_columns(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that is no column, and say which there are."""
    for name in names:
        if name not in known:
            raise UserError(f"no column {name!r}; there are: {', '.join(sorted(set(known)))}")
