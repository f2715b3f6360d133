"""The tables of runs as TensorBoard event files, for those who like to look at them there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epigrok.errors import UserError
from epigrok.experiments.run_files import RunDirectory, run_directories
from epigrok.files import make_writable_directory, read_json_lines

_NOT_CURVES = ("step", "split", "posterior", "num_samples", "num_rows", "num_fit_answers")


def write_event_files(directory: Path, log_directory: Path) -> int:
    """Write one folder of events per run and return the number of runs.

    Curves are called `metric/split/posterior` and `training/column`.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError(
            "TensorBoard is not installed; `pip install 'epigrok[tensorboard]'` adds it"
        ) from error
    runs = run_directories(directory)
    if not runs:
        raise UserError(f"there are no runs in {directory}")
    make_writable_directory(log_directory)
    for run in runs:
        target = log_directory / run.path.resolve().name
        # Events of an earlier conversion would be drawn a second time.
        for old in target.glob("events.out.tfevents.*"):
            old.unlink()
        with SummaryWriter(str(target)) as writer:
            for name, value, step in curves(run):
                writer.add_scalar(name, value, step)
    return len(runs)


def curves(run: RunDirectory) -> Iterator[tuple[str, float, int]]:
    """Name, value and step of every point; of several numbers of samples the first counts."""
    seen = set()
    for row in read_json_lines(run.table("metrics")):
        key = row["step"], row["split"], row["posterior"]
        if key not in seen:
            seen.add(key)
            for metric, value in _values(row):
                yield f"{metric}/{row['split']}/{row['posterior']}", value, row["step"]
    for row in read_json_lines(run.table("training")):
        for column, value in _values(row):
            yield f"training/{column}", value, row["step"]


def _values(row: dict[str, Any]) -> list[tuple[str, float]]:
    return [(name, value) for name, value in row.items() if name not in _NOT_CURVES]
