"""`epigrok monitor RUN`: where each split stood along a run, by the noise its answers tolerate."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from epigrok.commands.arguments import parse
from epigrok.runs.device import DeviceName
from epigrok.wording import NONE, step_text


@dataclass(frozen=True, kw_only=True)
class MonitorArguments:
    """Say of each split whether the model had generalised to it, at every kept checkpoint.

    A cell has the state and the tolerance ratio: near 1 where a rule covers the split as it covers
    the training split, near 0.1 where training was memorised. No label of the split is used.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Directory of a run; `zoo:NAME` is a run that comes with the package."""
    device: DeviceName = "auto"


def main(arguments: Sequence[str]) -> int:
    """Look at the checkpoints in order and print a table, then the changes of state."""
    parsed = parse(MonitorArguments, "monitor", arguments)
    # Imported here, because help needs no torch.
    from epigrok.runs.run import open_run
    from epigrok.runs.watching import looks_at_checkpoints

    run = open_run(parsed.run)
    splits = [split.name for split in run.config.task.splits][1:]
    table = Table(box=MARKDOWN)
    for head in ("step", "training accuracy", *splits):
        table.add_column(head, justify="right")
    last_step = step_text(run.newest_step())
    changes: list[str] = []
    states: dict[str, str] = {}
    for rows in looks_at_checkpoints(run, parsed.device):
        seen, *watched = rows
        step = step_text(seen["step"])
        # On the error stream, so that the table alone can be kept; a large network takes minutes.
        print(f"step {step} of {last_step}", file=sys.stderr, flush=True)
        table.add_row(step, f"{seen['train_accuracy']:.2f}", *map(_cell, watched))
        for row in watched:
            if row["state"] != states.get(row["split"], "fitting"):
                changes.append(f"{row['split']}: {row['state']} at step {step}")
            states[row["split"]] = row["state"]
    Console(width=120, no_color=True, markup=False).print(table)
    print("\n".join(changes) if changes else "no split changed its state")
    return 0


def _cell(row: dict[str, object]) -> str:
    ratio = row.get("tolerance_ratio")
    number = f"{ratio:.2f}" if isinstance(ratio, float) else NONE
    return f"{row['state']} {number}"
