"""`epigrok monitor RUN`: where each split stood along a run, by the noise its answers tolerate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from epigrok.commands.arguments import parse
from epigrok.runs.device import DeviceName
from epigrok.wording import step_text

_CELL = 17
"""Wide enough for the longest state and a ratio."""


@dataclass(frozen=True, kw_only=True)
class MonitorArguments:
    """Say of each split whether the model had generalised to it, at every kept checkpoint.

    A cell has the state and the tolerance ratio: near 1 where a rule covers the split as it covers
    the training split, near 0.1 where training was memorised. Before the training split is fitted
    the ratio says nothing and is left out. No label of the split is used.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Directory of a run; `zoo:NAME` is a run that comes with the package."""
    device: DeviceName = "auto"


def main(arguments: Sequence[str]) -> int:
    """Look at the checkpoints in order, a line each, then say what was seen."""
    parsed = parse(MonitorArguments, "monitor", arguments)
    # Imported here, because help needs no torch.
    from epigrok.runs.run import open_run
    from epigrok.runs.watching import looks_at_checkpoints

    run = open_run(parsed.run)
    splits = run.config.task.splits[1:]
    heads = (f"{split.name:<{_CELL}}" for split in splits)
    print("  ".join(("   step", "training accuracy", *heads)).rstrip(), flush=True)
    watched: dict[str, list[Mapping[str, Any]]] = {split.name: [] for split in splits}
    for seen, *others in looks_at_checkpoints(run, parsed.device):
        numbers = (f"{step_text(seen['step']):>7}", f"{seen['train_accuracy']:17.2f}")
        # One by one, because a large network takes minutes.
        print("  ".join((*numbers, *map(_cell, others))).rstrip(), flush=True)
        for row in others:
            watched[row["split"]].append(row)
    print()
    for split in splits:
        print(f"{split.name}: {split.meaning}")
    print(f"\n{what_was_seen(watched)}")
    return 0


def _cell(row: Mapping[str, Any]) -> str:
    ratio = row.get("tolerance_ratio")
    is_read = row["state"] != "fitting" and ratio is not None
    return f"{row['state']:<12} {ratio:.2f}" if is_read else f"{row['state']:<{_CELL}}"


def what_was_seen(watched: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """A sentence on what became of every split; rows are in order of steps."""
    return (
        f"Without labels, the monitor saw: {'; '.join(_seen(*each) for each in watched.items())}."
    )


def _seen(split: str, rows: Sequence[Mapping[str, Any]]) -> str:
    first = {row["state"]: step_text(row["step"]) for row in reversed(rows)}
    if "generalised" not in first:
        return f"{split} {rows[-1]['state']} to the end" if rows else f"nothing of {split}"
    text = f"{split} generalised at step {first['generalised']}"
    if "lost" not in first:
        return text
    again = ", then generalised again" if rows[-1]["state"] == "generalised" else ""
    return f"{text} and lost at step {first['lost']}{again}"
