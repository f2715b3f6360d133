"""`epigrok separation DIR`: what tells the runs that generalised from those that memorised."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from epigrok.commands.arguments import parse
from epigrok.config import RunConfig, flatten, preset, presets, to_json
from epigrok.errors import UserError
from epigrok.evaluation import AccuracyBounds, Reading, Separation, readings, separations
from epigrok.evaluation.separation import OUTCOMES
from epigrok.experiments.run_files import RunDirectory, run_directories
from epigrok.experiments.zoo import located
from epigrok.files import make_writable_directory, read_json_lines, write_file

_HEADS = {
    "peak": "uncertainty at its peak",
    "per_log_classes": "uncertainty / ln C",
    "of_peak": "uncertainty / own peak",
    "over_training": "uncertainty / training split's",
}
_WIDTH = 240


@dataclass(frozen=True, kw_only=True)
class SeparationArguments:
    """Compare the uncertainty of finished runs that generalised and that memorised, by preset.

    Reads config.json and metrics.jsonl of every run. `point` stands for plain predictive entropy.
    A cell shows the largest value of runs that generalised, the smallest of those that memorised,
    and the ratio of the two where they are apart; peaks are in nats, read from the moment that the
    training split is fitted. Runs with an accuracy between the bounds, and runs that never fitted
    their training split, are counted but left out.
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Of a sweep, or of a single run; `zoo:NAME` is one that comes with the package."""
    split: Literal["id_val", "ood_train", "ood_val"] = "id_val"
    """Held-out split to judge by."""
    csv: Path | None = None
    """File for the table behind: one line per run and posterior."""
    bounds: Annotated[AccuracyBounds, tyro.conf.arg(name="")] = field(
        default_factory=AccuracyBounds
    )


@dataclass(frozen=True)
class _RunReadings:
    run: str
    config: RunConfig
    readings: list[Reading]


def main(arguments: Sequence[str]) -> int:
    """Print the table, and write the one behind it if asked to."""
    parsed = parse(SeparationArguments, "separation", arguments)
    if parsed.csv is not None:
        make_writable_directory(parsed.csv.absolute().parent)
    directories = run_directories(located(parsed.directory))
    runs = [run for path in directories if (run := _read(path, parsed.split)) is not None]
    if not runs:
        raise UserError(
            f"no finished run in {parsed.directory} tracked 'point' and has the split "
            f"{parsed.split!r}"
        )
    runs.sort(key=lambda run: (run.config.preset, _variant(run.config), run.config.run_seed))
    groups: dict[str, list[Reading]] = {}
    for run in runs:
        groups.setdefault(run.config.preset, []).extend(run.readings)
    if len(groups) > 1:
        # Whether one threshold would do for all: nobody knows the right one for a new kind of run.
        groups["all of them"] = [reading for run in runs for reading in run.readings]
    # A fixed width, so that a narrow terminal wraps lines instead of cutting numbers; and no markup
    # from names that stand in files.
    console = Console(width=_WIDTH, no_color=True, markup=False)
    console.print(_counts(runs, parsed.bounds))
    console.print(_table(separations(groups, parsed.bounds)))
    unused = len(directories) - len(runs)
    if unused:
        print(f"{unused} of {len(directories)} runs are not finished or lack the split or 'point'")
    if parsed.csv is not None:
        write_file(parsed.csv, _csv(runs, parsed))
        print(f"every run and posterior: {parsed.csv}")
    return 0


def _read(directory: RunDirectory, split: str) -> _RunReadings | None:
    """The readings of a run that took its last step, if it has any."""
    config = directory.config()
    metrics = read_json_lines(directory.table("metrics"))
    if not metrics or metrics[-1]["step"] < config.num_steps:
        return None
    found = readings(metrics, split, config.task.vocabulary_size)
    return _RunReadings(directory.path.name, config, found) if found else None


def _counts(runs: Sequence[_RunReadings], bounds: AccuracyBounds) -> Table:
    outcomes = Counter((run.config.preset, bounds.outcome(run.readings[0])) for run in runs)
    table = Table(box=MARKDOWN)
    for head in ("runs of", *OUTCOMES):
        table.add_column(head, justify="left" if head == "runs of" else "right")
    for name in dict.fromkeys(run.config.preset for run in runs):
        table.add_row(name, *(str(outcomes[name, outcome]) for outcome in OUTCOMES))
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


def _csv(runs: Sequence[_RunReadings], parsed: SeparationArguments) -> str:
    lines = [
        {
            "preset": run.config.preset,
            "variant": _variant(run.config),
            "seed": run.config.run_seed,
            "run": run.run,
            "split": parsed.split,
            "outcome": parsed.bounds.outcome(reading),
            **asdict(reading),
        }
        for run in runs
        for reading in run.readings
    ]
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _variant(config: RunConfig) -> str:
    """How a run departs from its preset in what it learns and how."""
    if config.preset not in presets():
        return ""
    recipe = flatten(to_json(preset(config.preset)))
    changes = [
        f"{name}={value}"
        for name, value in flatten(to_json(config)).items()
        if recipe.get(name) != value
        and not name.startswith("evaluation.")
        and name not in ("run_seed", "task_seed", "num_ladder_checkpoints")
    ]
    return " ".join(changes) or "plain"
