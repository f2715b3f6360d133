"""`epigrok separation DIR`: which uncertainty separates generalised from memorised runs?"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from io import StringIO
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from epigrok.commands.arguments import parse
from epigrok.config.splits import ID_VAL
from epigrok.errors import UserError
from epigrok.evaluation import (
    AccuracyBounds,
    FinalUncertainty,
    Separation,
    final_uncertainties,
    separations,
)
from epigrok.evaluation.fates import FATES, Fate
from epigrok.evaluation.schema import TOTAL_FINAL
from epigrok.files import make_writable_directory, write_file
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.events import rows_by_run
from epigrok.tables.fields import distinguishing_fields, field_label, value_label
from epigrok.tables.groups import configs_by_preset

_HEADS = {
    "peak_uncertainty": "uncertainty at its peak",
    "per_log_classes": "uncertainty / ln C",
    "of_peak": "uncertainty / own peak",
    "over_training": "uncertainty / training split's",
}
_WIDTH = 240


@dataclass(frozen=True, kw_only=True)
class SeparationArguments:
    """Compare the uncertainty of finished runs that generalised with those that memorised.

    The table has rows for each preset; `point` stands for plain predictive entropy.
    A cell shows the largest value of runs that generalised, the smallest of those that memorised,
    and the ratio of the two if they do not overlap. Peaks are in nats, from the step at which the
    training split was first fitted. Runs with an accuracy between the bounds, and runs that never
    fitted their training split, are counted but not compared.
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""
    split: str = ID_VAL.name
    """Held-out split to judge by."""
    csv: Path | None = None
    """CSV file to write, with one line per run and posterior."""
    bounds: Annotated[AccuracyBounds, tyro.conf.arg(name="")] = field(
        default_factory=AccuracyBounds
    )


@dataclass(frozen=True)
class _RunUncertainties:
    run_id: str
    preset: str
    variant: str
    """Fields that distinguish it from other runs of its preset, without the seeds."""
    seed: int
    uncertainties: list[FinalUncertainty]


def main(arguments: Sequence[str]) -> int:
    """Print the table, and write the numbers behind it if asked."""
    parsed = parse(SeparationArguments, "separation", arguments)
    if parsed.csv is not None:
        make_writable_directory(parsed.csv.absolute().parent)
    store = open_sweep(parsed.directory)
    runs = _read(open_sweep(parsed.directory, done_only=True), parsed.split)
    if not runs:
        raise UserError(
            f"no finished run in {parsed.directory} tracked 'point' and has the split "
            f"{parsed.split!r}; choose another --split, or finish a run that tracks 'point'"
        )
    groups: dict[str, list[FinalUncertainty]] = {}
    for run in runs:
        groups.setdefault(run.preset, []).extend(run.uncertainties)
    if len(groups) > 1:
        # Does one threshold work for all presets? For a new kind of run, none is known yet.
        groups["all of them"] = [found for run in runs for found in run.uncertainties]
    # A fixed width, so that a narrow terminal wraps lines instead of cutting numbers. No markup,
    # because names come from files.
    console = Console(width=_WIDTH, no_color=True, markup=False)
    console.print(_counts(runs, parsed.bounds))
    console.print(_table(separations(groups, parsed.bounds)))
    unused = len(store.runs) - len(runs)
    if unused:
        print(f"{unused} of {len(store.runs)} runs are not finished, or lack the split or 'point'")
    if parsed.csv is not None:
        write_file(parsed.csv, _csv(runs, parsed))
        print(f"every run and posterior: {parsed.csv}")
    return 0


def _read(store: SweepStore, split: str) -> list[_RunUncertainties]:
    """The uncertainties of every run that has any, in order of presets, variants and seeds."""
    rows = dict(rows_by_run(store, (TOTAL_FINAL,)))
    found = []
    for preset, configs in configs_by_preset(store).items():
        fields = distinguishing_fields(configs)
        for config in configs:
            run_id = config["run_id"]
            num_classes = store.runs[run_id].description().num_classes
            of_run = final_uncertainties(rows.get(run_id, []), split, num_classes)
            variant = ", ".join(f"{field_label(n)} = {value_label(n, config[n])}" for n in fields)
            if of_run:
                found.append(_RunUncertainties(run_id, preset, variant, config["run_seed"], of_run))
    return sorted(found, key=lambda run: (run.preset, run.variant, run.seed))


def _fate(found: FinalUncertainty, bounds: AccuracyBounds) -> Fate:
    return bounds.fate(found.accuracy, found.first_fitted_step)


def _counts(runs: Sequence[_RunUncertainties], bounds: AccuracyBounds) -> Table:
    fates = Counter((run.preset, _fate(run.uncertainties[0], bounds)) for run in runs)
    table = Table(box=MARKDOWN)
    for head in ("runs of", *FATES):
        table.add_column(head, justify="left" if head == "runs of" else "right")
    for name in dict.fromkeys(run.preset for run in runs):
        table.add_row(name, *(str(fates[name, fate]) for fate in FATES))
    return table


def _table(results: Sequence[Separation]) -> Table:
    table = Table(box=MARKDOWN)
    for head in ("preset", "posterior", "runs", *_HEADS.values()):
        table.add_column(head, no_wrap=True)
    rows: dict[tuple[str, str], dict[str, Separation]] = {}
    for result in results:
        rows.setdefault((result.group, result.posterior), {})[result.statistic] = result
    for (group, posterior), row in rows.items():
        counted = row["per_log_classes"]
        runs = f"{counted.num_generalised} v {counted.num_memorised}"
        table.add_row(group, posterior, runs, *(_cell(row[name]) for name in _HEADS))
    return table


def _cell(result: Separation) -> str:
    values = f"{_number(result.largest_generalised)} / {_number(result.smallest_memorised)}"
    if result.margin is None:
        return values
    return f"{values}, ×{_number(result.margin)}" if result.separates else f"{values}, overlap"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _csv(runs: Sequence[_RunUncertainties], parsed: SeparationArguments) -> str:
    lines = [
        {
            "preset": run.preset,
            "variant": run.variant,
            "seed": run.seed,
            "run_id": run.run_id,
            "split": parsed.split,
            "fate": _fate(found, parsed.bounds),
            **asdict(found),
        }
        for run in runs
        for found in run.uncertainties
    ]
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
