"""The curves of runs as TensorBoard event files."""

import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from epigrok.evaluation.schema import TABLES
from epigrok.extras import extra_named
from epigrok.files import make_writable_directory, write_file
from epigrok.tables.sql_text import quoted_name
from epigrok.tables.store import SweepStore

_PREFIX = "events.out.tfevents."
_VERSION = "brain.Event:2"
"""What the first record of an event file says."""


def write_event_files(store: SweepStore, log_directory: Path) -> int:
    """Write one folder of events per run and return the number of runs.

    Curves are called `metric/split/posterior` and `training/column`.
    """
    with extra_named():
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    make_writable_directory(log_directory)
    for run_id in store.runs:
        target = log_directory / run_id
        target.mkdir(exist_ok=True)
        earlier = list(target.glob(f"{_PREFIX}*"))
        # TensorBoard's own writer has a thread, which would fail out of sight on a full disk.
        content = BytesIO()
        records = RecordWriter(content)
        records.write(Event(wall_time=time.time(), file_version=_VERSION).SerializeToString())
        for name, value, step in curves(store.of_runs([run_id])):
            summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
            event = Event(wall_time=time.time(), step=step, summary=summary)
            records.write(event.SerializeToString())
        write_file(target / f"{_PREFIX}{time.time_ns()}", content.getvalue())
        # TensorBoard would draw the events of an earlier conversion as well.
        for old in earlier:
            old.unlink()
    return len(store.runs)


def curves(store: SweepStore) -> Iterator[tuple[str, float, int]]:
    """Name, value and step of every point of one run."""
    for table, keys in (("metrics", ("split", "posterior")), ("training", ())):
        names = [column.name for column in TABLES[table].values if column.type == "number"]
        chosen = ", ".join(map(quoted_name, ("step", *keys, *names)))
        for row in store.sql(f"select {chosen} from {table} order by step").fetchall():
            step, of_keys, values = row[0], row[1 : 1 + len(keys)], row[1 + len(keys) :]
            for name, value in zip(names, values):
                if value is not None:
                    parts = (name, *of_keys) if keys else (table, name)
                    yield "/".join(parts), value, step
